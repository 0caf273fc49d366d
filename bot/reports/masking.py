"""The last look for secrets, behind the adapters' masks: what has the shape of a credential is not shown.

Texts of Terraform are masked where they come from, values that are known to be secret travel as marks. Answers of
servers, messages of tools and people's texts are neither; for them only the shape of what they hold can be told.
"""

from __future__ import annotations

import re

HIDDEN = "<masked>"

_SHAPES = (
    # A private key; one without its end reaches to the end of the text.
    (
        ("PRIVATE KEY-----",),
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    ),
    # Tokens of GitHub, GitLab, Slack, and of the HashiCorp tools.
    (("ghp_", "gho_", "ghr_", "ghs_", "ghu_"), r"(?<![A-Za-z0-9_])gh[oprsu]_[A-Za-z0-9]{20,255}"),
    (("github_pat_",), r"(?<![A-Za-z0-9_])github_pat_[A-Za-z0-9_]{20,255}"),
    (("glpat-",), r"(?<![A-Za-z0-9_])glpat-[A-Za-z0-9_-]{16,255}"),
    (("xox",), r"(?<![A-Za-z0-9_])xox[abeprs]-[A-Za-z0-9-]{10,255}"),
    (("hvs.",), r"(?<![A-Za-z0-9_])hvs\.[A-Za-z0-9_-]{20,255}"),
    ((".atlasv1.",), r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,255}"),
    # A JSON Web Token.
    (("eyJ",), r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    # The credentials of an address.
    (("://",), r"(?<=://)[^\s/@:]{0,255}:[^\s/@]{1,255}(?=@)"),
    # What follows the scheme of an Authorization header; words of prose hold no digits.
    (("earer ",), r"(?<=[Bb]earer )(?=[A-Za-z._~+/-]{0,99}[0-9])[A-Za-z0-9._~+/=-]{12,4096}"),
    (("asic ",), r"(?<=[Bb]asic )(?=[A-Za-z+/]{0,99}[0-9])[A-Za-z0-9+/]{12,4096}={0,2}(?![A-Za-z0-9+/])"),
)
"""Words without which a shape cannot be there, which are found far faster, and the shape."""
_COMPILED = tuple((words, re.compile(shape, re.DOTALL)) for words, shape in _SHAPES)
_SECRET_NAME = re.compile(
    r"authorization|cookie|token|secret|passw|api[-_]?key|access[-_]?key|private[-_]?key|credential|signature",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """The text with everything of the shape of a credential replaced; it takes time in proportion to the text."""
    for words, shape in _COMPILED:
        if any(word in text for word in words):
            text = shape.sub(HIDDEN, text)
    return text


def names_secret(name: str) -> bool:
    """Whether a header, a query parameter or a field of this name usually holds a secret."""
    return _SECRET_NAME.search(name) is not None

"""What is pushed elsewhere: lines of the same repository, of others only if the policy says so."""

from __future__ import annotations

import pytest

from bot.domain.files import Change, File
from bot.domain.promotion import Target
from bot.domain.review import Patch, Split
from bot.domain.view import PromotionView
from bot.reports.body import render_body
from bot.web.promotion_page import Links, PromotionFacts, show_promotion
from tests.reports.views import MAIN, NOW, preview, promotion, view

CHANGE = Change("apps/web.yaml", File(b"tag: 1\n"), File(b"tag: 2\n"))
OTHER = Target("https://gitlab.example/acme/secret-ops.git", "main")
SAME = Target(MAIN.url.upper().replace("HTTPS", "https"), "env/dev")


def pushed_to(target: Target, *, shown: bool = False) -> PromotionView:
    split = Split(0, (), Patch(MAIN, ()), others=(Patch(target, (CHANGE,)),))
    return view(preview=preview(split=split), show_others=shown)


@pytest.mark.parametrize(
    ("target", "shown", "lines"),
    [
        pytest.param(SAME, False, True, id="another branch of the same repository"),
        pytest.param(OTHER, False, False, id="another repository"),
        pytest.param(OTHER, True, True, id="another repository that may be shown"),
    ],
)
def test_the_lines_are_shown_where_they_may_be(target: Target, shown: bool, lines: bool) -> None:
    seen = pushed_to(target, shown=shown)
    body = render_body(seen)
    assert "`apps/web.yaml`" in body
    assert "1 file (+1 −1)" in body
    assert ("+tag: 2" in body) is lines
    facts = PromotionFacts(promotion(), seen.preview, NOW, {}, None, None, "", (), Links(), show_others=shown)
    assert [("+tag: 2" in text) for _, text in show_promotion(facts).other_patches] == [True] * lines

"""What git's texts mean, row by row, and how its formats are read."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from bot.adapters.git.command import Completed
from bot.adapters.git.errors import TEXTS, Trouble, failure_of, raise_for
from bot.adapters.git.objects import parse_commit, parse_trailers
from bot.adapters.git.pushing import read_report
from bot.domain.files import CommitId
from bot.ports import TerminalError, TransientError

ID = "12" * 20

ROWS = [
    (
        "fatal: could not read Username for 'https://h': terminal prompts disabled",
        Trouble.ACCESS,
        TerminalError,
    ),
    ("fatal: Authentication failed for 'https://h/a.git/'", Trouble.ACCESS, TerminalError),
    (
        "fatal: unable to access 'https://h/a/': The requested URL returned error: 403",
        Trouble.ACCESS,
        TerminalError,
    ),
    ("remote: Write access to repository not granted.", Trouble.ACCESS, TerminalError),
    (
        "fatal: unable to access 'x': The requested URL returned error: 429",
        Trouble.RATE_LIMIT,
        TransientError,
    ),
    ("fatal: unable to access 'x': The requested URL returned error: 404", Trouble.NOT_FOUND, TerminalError),
    ("fatal: repository 'https://h/a.git/' not found", Trouble.NOT_FOUND, TerminalError),
    ("fatal: unable to access 'x': The requested URL returned error: 503", Trouble.NETWORK, TransientError),
    ("fatal: transport 'ext' not allowed", Trouble.FORBIDDEN_ADDRESS, TerminalError),
    (
        "fatal: unable to access 'x': SSL certificate problem: self-signed certificate",
        Trouble.CERTIFICATE,
        TerminalError,
    ),
    ("fatal: x: server certificate verification failed. CAfile: none", Trouble.CERTIFICATE, TerminalError),
    ("fatal: write error: No space left on device", Trouble.DISK, TransientError),
    ("fatal: write error: Disk quota exceeded", Trouble.DISK, TransientError),
    ("fatal: couldn't find remote ref refs/pull/7/head", Trouble.MISSING_REF, TerminalError),
    (f"fatal: remote error: upload-pack: not our ref {ID}", Trouble.MISSING_REF, TerminalError),
    (
        f"error: Server does not allow request for unadvertised object {ID}",
        Trouble.MISSING_REF,
        TerminalError,
    ),
    ("fatal: unable to access 'x': Could not resolve host: h", Trouble.NETWORK, TransientError),
    ("fatal: unable to access 'x': Failed to connect to h port 443", Trouble.NETWORK, TransientError),
    ("fatal: unable to access 'x': Couldn't connect to server", Trouble.NETWORK, TransientError),
    ("fatal: unable to access 'x': Recv failure: Connection reset by peer", Trouble.NETWORK, TransientError),
    (
        "fatal: unable to access 'x': Operation too slow. Less than 1000 bytes/sec",
        Trouble.NETWORK,
        TransientError,
    ),
    ("fatal: unable to access 'x': Operation timed out after 1 ms", Trouble.NETWORK, TransientError),
    ("fatal: unable to access 'x': Empty reply from server", Trouble.NETWORK, TransientError),
    (
        "error: RPC; curl 18 transfer closed with outstanding read data remaining",
        Trouble.NETWORK,
        TransientError,
    ),
    ("fatal: early EOF", Trouble.NETWORK, TransientError),
    ("error: RPC failed; HTTP 502", Trouble.NETWORK, TransientError),
    ("fetch-pack: unexpected disconnect while reading sideband packet", Trouble.NETWORK, TransientError),
    ("fatal: the remote end hung up unexpectedly", Trouble.NETWORK, TransientError),
    (
        "fatal: x: gnutls_handshake() failed: The TLS connection was non-properly terminated",
        Trouble.NETWORK,
        TransientError,
    ),
    ("fatal: x: OpenSSL SSL_connect: Connection was reset", Trouble.NETWORK, TransientError),
    ("fatal: refusing to merge unrelated histories", Trouble.UNRELATED, TerminalError),
    ("fatal: Unable to create '/m/packed-refs.lock': File exists.", Trouble.BUSY, TransientError),
    ("fatal: not a git repository: '/m'", Trouble.CORRUPT, TerminalError),
    (f"error: object file /m/objects/12/{ID[2:]} is empty", Trouble.CORRUPT, TerminalError),
    (f"fatal: loose object {ID} (stored in x) is corrupt", Trouble.CORRUPT, TerminalError),
    ("error: packfile /m/objects/pack/p.pack cannot be accessed", Trouble.CORRUPT, TerminalError),
    ("error: inflate: data stream error (incorrect header check)", Trouble.CORRUPT, TerminalError),
    (f"error: unable to unpack {ID} header", Trouble.CORRUPT, TerminalError),
    ("error: index file /m/objects/pack/p.idx is too small", Trouble.CORRUPT, TerminalError),
    ("error: refs/heads/main does not point to a valid object!", Trouble.CORRUPT, TerminalError),
    ("fatal: bad config line 1 in file /m/config", Trouble.CORRUPT, TerminalError),
    ("error: https://h/a did not send all necessary objects", Trouble.CORRUPT, TerminalError),
    (f"fatal: unable to read tree {ID}", Trouble.MISSING_OBJECT, TerminalError),
    (f"error: Could not read {ID}", Trouble.MISSING_OBJECT, TerminalError),
    (f"fatal: missing blob object '{ID}'", Trouble.MISSING_OBJECT, TerminalError),
    (f"fatal: Not a valid object name {ID}", Trouble.MISSING_OBJECT, TerminalError),
    (f"fatal: bad object {ID}", Trouble.MISSING_OBJECT, TerminalError),
    ("fatal: not a tree object", Trouble.MISSING_OBJECT, TerminalError),
    (f"merge-tree: {ID} - not something we can merge", Trouble.MISSING_OBJECT, TerminalError),
    (f"reading commit {ID}: {ID} is missing", Trouble.MISSING_OBJECT, TerminalError),
    (f"fatal: failed to unpack tree object {ID}", Trouble.MISSING_OBJECT, TerminalError),
    (f"error: src refspec {ID} does not match any", Trouble.MISSING_OBJECT, TerminalError),
    ("fatal: something that nobody has seen before", Trouble.OTHER, TerminalError),
]


@pytest.mark.parametrize(("text", "trouble", "error"), ROWS, ids=[row[0][:50] for row in ROWS])
def test_a_text_has_its_meaning(text: str, trouble: Trouble, error: type[Exception]) -> None:
    failure = failure_of("fetching x", Completed(128, b"", f"{text}\n"))
    assert failure.trouble is trouble
    assert isinstance(raise_for(failure), error)


def test_every_row_of_the_table_has_its_test() -> None:
    assert [pattern for pattern, _ in TEXTS if not any(re.search(pattern, text) for text, _, _ in ROWS)] == []


def test_a_message_says_what_was_tried_and_what_came_back() -> None:
    error = raise_for(
        failure_of("fetching https://h/a", Completed(128, b"", "line\nfatal: repository 'x' not found\n"))
    )
    assert str(error) == (
        "fetching https://h/a failed (not found): line / fatal: repository 'x' not found; "
        "check the address, and that the App is installed on it."
    )


@pytest.mark.parametrize(
    ("message", "trailers"),
    [
        ("subject", {}),
        ("Key: value", {}),
        ("subject\n\nbody", {}),
        ("subject\n\nKey: value", {"Key": "value"}),
        ("subject\n\nbody\n\nA: 1\nB-c: 2\n\n\n", {"A": "1", "B-c": "2"}),
        ("subject\n\nA: 1\n  more\nA: 2", {"A": "2"}),
        ("subject\n\nLong: one\n  two\n", {"Long": "one two"}),
        ("subject\n\nA: 1\nnot a trailer", {}),
        ("subject\n\nA: 1\n\nlast words", {}),
        ("subject\r\n\r\nA: 1\r\n", {"A": "1"}),
        ("subject\n\nhttps://example.com is fine", {}),
    ],
)
def test_trailers_are_the_last_paragraph(message: str, trailers: dict[str, str]) -> None:
    assert parse_trailers(message) == trailers


def test_a_commit_of_old_tools_is_read() -> None:
    raw = (
        f"tree {ID}\nauthor Nobody <> 1700000000 +9999\ncommitter X\nencoding ISO-8859-1\n"
        "gpgsig -----BEGIN\n line\n -----END\n\ngr\u00fc\u00df"
    ).encode("latin-1")
    commit = parse_commit(CommitId(ID), raw)
    assert commit.message == "gr\u00fc\u00df"
    assert commit.author.at == datetime.fromtimestamp(1700000000, UTC)
    assert (commit.committer.name, commit.committer.email) == ("X", "")
    assert commit.parents == ()


@pytest.mark.parametrize(
    ("report", "said", "expected"),
    [
        (
            "!\tx:refs/heads/m\t[remote rejected] (pre-receive hook declined)",
            "remote: no \nremote: \n",
            "no\npre-receive hook declined",
        ),
        (
            "!\tx:refs/heads/m\t[remote rejected] (protected branch hook declined)",
            "",
            "protected branch hook declined",
        ),
        ("!\tx:refs/heads/m\t[rejected] (stale info)", "", None),
        ("!\tx:refs/heads/m\t[remote rejected] (failed to update ref)", "", None),
        ("!\tx:refs/heads/m\t[remote rejected] (cannot lock ref 'refs/heads/m')", "", None),
        ("", "fatal: unable to access", None),
    ],
)
def test_a_refusal_is_told_from_a_race(report: str, said: str, expected: str | None) -> None:
    assert read_report(Completed(1, f"To x\n{report}\nDone".encode(), said)) == expected

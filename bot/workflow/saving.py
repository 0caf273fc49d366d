"""What people asked for while a segment worked: it is on the row already, and the segment's end must not undo it."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.promotion import Promotion


def keep_asked(after: Promotion, newest: Promotion, expected: Promotion) -> Promotion:
    """The row as a segment leaves it, with what commands made of `expected` meanwhile, which is `newest` now."""
    return replace(
        after,
        cancel_requested=newest.cancel_requested,
        accepted=newest.accepted,
        preview_wanted=newest.preview_wanted,
        woken=newest.woken,
        # What the walk waits for may have been said, or its end: it looks at once.
        wake_at=after.wake_at if newest.woken == expected.woken else None,
        drop=after.drop if newest.drop == expected.drop else newest.drop,
        pushers=tuple(dict.fromkeys((*after.pushers, *newest.pushers))),
    )

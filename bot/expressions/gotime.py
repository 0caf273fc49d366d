"""Times as Go's package time has them: durations, layouts, zones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.expressions.errors import ExpressionError
from bot.expressions.operands import INT_MAX, INT_MIN, Moment, Span, Zone

_MONTH_TEXT = "January February March April May June July August September October November December"
_WEEKDAY_TEXT = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday"
MONTHS = tuple(_MONTH_TEXT.split())
WEEKDAYS = tuple(_WEEKDAY_TEXT.split())

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_LAYOUT = re.compile(
    r"January|Jan|Monday|Mon|MST|2006|Z07:00:00|Z070000|Z07:00|Z0700|Z07|-07:00:00|-070000|-07:00|-0700|-07"
    r"|[.,]0+(?![0-9])|[.,]9+(?![0-9])|002|__2|_2006|_2|01|02|03|04|05|06|15|PM|pm|1|2|3|4|5"
)
_RFC3339 = "2006-01-02T15:04:05Z07:00"
_RFC3339_NANO = "2006-01-02T15:04:05.999999999Z07:00"
_GO_STRING = "2006-01-02 15:04:05.999999999 -0700 MST"
_LAYOUTS = (
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    _RFC3339,
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
)
_NUMBERS = {
    "2006": ("year", 4, 4),
    "06": ("short_year", 2, 2),
    "01": ("month", 2, 2),
    "1": ("month", 1, 2),
    "02": ("day", 2, 2),
    "2": ("day", 1, 2),
    "_2": ("day", 1, 2),
    "002": ("year_day", 3, 3),
    "__2": ("year_day", 1, 3),
    "15": ("hour", 2, 2),
    "03": ("hour", 2, 2),
    "3": ("hour", 1, 2),
    "04": ("minute", 2, 2),
    "4": ("minute", 1, 2),
    "05": ("second", 2, 2),
    "5": ("second", 1, 2),
}
_UTC = Zone("UTC", UTC)


def name_month(month: int) -> str:
    """The English name of a month, 1 to 12."""
    return MONTHS[month - 1]


def name_weekday(day: int) -> str:
    """The English name of a day, 0 is Sunday."""
    return WEEKDAYS[day]


# -- durations ---------------------------------------------------------------------------------------------


def make_span(nanoseconds: int) -> Span:
    """A duration; raises ExpressionError if it does not fit Go's 64 bits (about 292 years)."""
    if not INT_MIN <= nanoseconds <= INT_MAX:
        raise ExpressionError("a duration is out of range")
    return Span(nanoseconds)


def parse_span(text: str) -> Span:
    """Go's `time.ParseDuration`: `1h30m`, `-1.5s`, `0`."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Span(0)
    total, at = 0, 0
    while at < len(body):
        part = _DURATION_PART.match(body, at)
        if part is None or not (part[1] or part[2]) or len(part[0]) > 40:
            raise ExpressionError(f"{text[:60]!r} is no duration; write one such as 1h30m or 500ms")
        unit = _UNITS[part[3]]
        fraction = part[2] or ""
        total += int(part[1] or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        at = part.end()
    if not body:
        raise ExpressionError("an empty text is no duration; write one such as 1h30m or 500ms")
    return make_span(-total if text.startswith("-") else total)


def format_span(nanoseconds: int) -> str:
    """Go's `Duration.String()`: `1h30m0s`, `1.5s`, `20ms`, `0s`."""
    if nanoseconds == 0:
        return "0s"
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if size < 1_000_000_000:
        unit, scale = ("ns", 1) if size < 1_000 else ("µs", 1_000) if size < 1_000_000 else ("ms", 1_000_000)
        return sign + _decimal(size, scale) + unit
    minutes, rest = divmod(size, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    front = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{front}{_decimal(rest, 1_000_000_000)}s"


def _decimal(number: int, scale: int) -> str:
    whole, rest = divmod(number, scale)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(scale)) - 1).rstrip('0')}"


# -- zones and moments -------------------------------------------------------------------------------------


def find_zone(name: str) -> Zone:
    """Go's `time.LoadLocation`; `Local` is UTC, as in a container."""
    if name in ("", "UTC", "Local"):
        return _UTC
    try:
        return Zone(name, ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ExpressionError(f"unknown time zone {name[:60]!r}; write one such as Europe/Berlin") from None


def make_moment(at: datetime) -> Moment:
    """A moment from a datetime; one without zone is UTC."""
    return Moment(at if at.tzinfo else at.replace(tzinfo=UTC), at.microsecond * 1000)


def count_nanoseconds(moment: Moment) -> int:
    """Nanoseconds since 1970."""
    gap = moment.at - datetime(1970, 1, 1, tzinfo=UTC)
    return (gap.days * 86400 + gap.seconds) * 1_000_000_000 + moment.nanosecond


def shift(moment: Moment, nanoseconds: int) -> Moment:
    """The moment that many nanoseconds later, in the same zone."""
    return from_nanoseconds(count_nanoseconds(moment) + nanoseconds, moment.at.tzinfo or UTC)


def from_nanoseconds(nanoseconds: int, zone: tzinfo) -> Moment:
    """The moment that many nanoseconds after 1970; raises ExpressionError outside the years 1 to 9999."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=rest // 1000)
        return Moment(at.astimezone(zone), rest)
    except OverflowError:
        raise ExpressionError("a time is outside the years 1 to 9999") from None


def to_zone(moment: Moment, zone: tzinfo) -> Moment:
    """The same moment in another zone."""
    return from_nanoseconds(count_nanoseconds(moment), zone)


# -- layouts -----------------------------------------------------------------------------------------------


def format_moment_json(moment: Moment) -> str:
    """RFC 3339 with as many digits of the second as needed."""
    return format_moment(moment, _RFC3339_NANO)


def format_moment_text(moment: Moment) -> str:
    """Go's `Time.String()`."""
    return format_moment(moment, _GO_STRING)


def format_moment(moment: Moment, layout: str) -> str:
    """Go's `Time.Format(layout)`: the reference time is Mon Jan 2 15:04:05 MST 2006."""
    return _LAYOUT.sub(lambda found: _format_part(moment, found.group()), layout)


def _format_part(moment: Moment, part: str) -> str:
    at = moment.at
    hour = at.hour % 12 or 12
    simple = {
        "January": name_month(at.month),
        "Jan": name_month(at.month)[:3],
        "Monday": name_weekday((at.weekday() + 1) % 7),
        "Mon": name_weekday((at.weekday() + 1) % 7)[:3],
        "2006": f"{at.year:04d}",
        "_2006": f"_{at.year:04d}",
        "06": f"{at.year % 100:02d}",
        "01": f"{at.month:02d}",
        "1": str(at.month),
        "02": f"{at.day:02d}",
        "_2": f"{at.day:2d}",
        "2": str(at.day),
        "002": f"{at.timetuple().tm_yday:03d}",
        "__2": f"{at.timetuple().tm_yday:3d}",
        "15": f"{at.hour:02d}",
        "03": f"{hour:02d}",
        "3": str(hour),
        "04": f"{at.minute:02d}",
        "4": str(at.minute),
        "05": f"{at.second:02d}",
        "5": str(at.second),
        "PM": "PM" if at.hour >= 12 else "AM",
        "pm": "pm" if at.hour >= 12 else "am",
    }
    if part in simple:
        return simple[part]
    if part[0] in ".,":
        digits = f"{moment.nanosecond:09d}"
        digits = digits[: len(part) - 1] if part[1] == "0" else digits[: len(part) - 1].rstrip("0")
        return part[0] + digits if digits else ""
    return _format_offset(at, part)


def _format_offset(at: datetime, part: str) -> str:
    offset = at.utcoffset() or timedelta()
    seconds = int(offset.total_seconds())
    if part == "MST":
        name = at.tzname() or ""
        if name == "UTC" or (name and not name.startswith("UTC")):
            return name
        return (
            ("-" if seconds < 0 else "+")
            + f"{abs(seconds) // 3600:02d}"
            + (f"{abs(seconds) % 3600 // 60:02d}" if seconds % 3600 else "")
        )
    if part.startswith("Z") and seconds == 0:
        return "Z"
    sign, size = ("-", -seconds) if seconds < 0 else ("+", seconds)
    colon = ":" if ":" in part else ""
    text = f"{sign}{size // 3600:02d}"
    if len(part) > 3:
        text += f"{colon}{size % 3600 // 60:02d}"
    if len(part.replace(":", "")) > 5:
        text += f"{colon}{size % 60:02d}"
    return text


def parse_date(text: str, zone: Zone | None) -> Moment:
    """A time in one of the layouts that expr-lang's `date` tries."""
    for layout in _LAYOUTS:
        if (moment := _try_parse(text, layout, zone)) is not None:
            return moment
    raise ExpressionError(
        f"{text[:60]!r} is no date; write one such as 2024-05-06T07:08:09Z or give its layout"
    )


def parse_moment(text: str, layout: str, zone: Zone | None) -> Moment:
    """Go's `time.Parse` (or `ParseInLocation` with a zone)."""
    moment = _try_parse(text, layout, zone)
    if moment is None:
        raise ExpressionError(f"{text[:60]!r} does not fit the layout {layout[:60]!r}")
    return moment


def _try_parse(text: str, layout: str, zone: Zone | None) -> Moment | None:
    fields: dict[str, int] = {}
    offset: tzinfo | None = None
    at = end = 0
    for part in _LAYOUT.finditer(layout):
        literal = layout[end : part.start()]
        if not text.startswith(literal, at):
            return None
        at, end = at + len(literal), part.end()
        name = part.group()
        found = _match_part(name, text, at)
        if found is None:
            return None
        if name in ("MST",) or name[0] in "Z-":
            offset = _read_offset(found.group()) or offset
        else:
            _store(name, found, fields)
        at = found.end()
        if name in ("05", "5") and not layout.startswith((".", ","), end):
            # Go takes a fraction after the seconds even if the layout has none.
            fraction = re.compile(r"[.,]([0-9]+)").match(text, at)
            if fraction:
                fields["nanosecond"] = int(fraction[1][:9].ljust(9, "0"))
                at = fraction.end()
    if text[at:] != layout[end:]:
        return None
    return _assemble(fields, offset or (zone.info if zone else UTC))


def _match_part(name: str, text: str, at: int) -> re.Match[str] | None:
    if name in _NUMBERS:
        _, least, most = _NUMBERS[name]
        return re.compile(
            rf" ?[0-9]{{{least},{most}}}" if "_" in name else rf"[0-9]{{{least},{most}}}"
        ).match(text, at)
    if name in ("January", "Jan", "Monday", "Mon"):
        words = MONTHS if name.startswith("J") else WEEKDAYS
        choices = words if len(name) > 3 else tuple(word[:3] for word in words)
        return re.compile("|".join(choices), re.IGNORECASE).match(text, at)
    if name in ("PM", "pm"):
        return re.compile("AM|PM" if name == "PM" else "am|pm").match(text, at)
    if name == "MST":
        return re.compile(r"[A-Z]{3,4}|[+-][0-9]{2}").match(text, at)
    if name[0] in ".,":
        if name[1] == "9":
            return re.compile(r"(?:[.,]([0-9]+))?").match(text, at)
        return re.compile(rf"[.,]([0-9]{{{len(name) - 1}}})").match(text, at)
    colon = ":" if ":" in name else ""
    digits = len(name.replace(":", "")) - 1
    pattern = r"[+-][0-9]{2}" + rf"{colon}[0-9]{{2}}" * (digits // 2 - 1)
    return re.compile(f"Z|{pattern}" if name[0] == "Z" else pattern).match(text, at)


def _store(name: str, found: re.Match[str], fields: dict[str, int]) -> None:
    text = found.group()
    if name in _NUMBERS:
        fields[_NUMBERS[name][0]] = int(text)
    elif name in ("January", "Jan"):
        fields["month"] = [month[:3].lower() for month in MONTHS].index(text[:3].lower()) + 1
    elif name in ("PM", "pm"):
        fields["afternoon"] = int(text.upper() == "PM")
    elif name[0] in ".," and found[1]:
        fields["nanosecond"] = int(found[1][:9].ljust(9, "0"))


def _read_offset(text: str) -> tzinfo | None:
    if text in ("Z", "UTC", "GMT"):
        return UTC
    if text[0] not in "+-":
        # An abbreviation alone names no offset; Go invents a zone of that name at UTC.
        return timezone(timedelta(), text)
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return timezone(timedelta(seconds=-seconds if text[0] == "-" else seconds)) if seconds < 86400 else None


def _assemble(fields: dict[str, int], zone: tzinfo) -> Moment | None:
    hour = fields.get("hour", 0)
    if "afternoon" in fields:
        hour = hour % 12 + 12 * fields["afternoon"]
    year = fields.get("year", 1)
    if "short_year" in fields:
        year = fields["short_year"] + (1900 if fields["short_year"] >= 69 else 2000)
    nanosecond = fields.get("nanosecond", 0)
    try:
        at = datetime(
            year,
            fields.get("month", 1),
            fields.get("day", 1),
            hour,
            fields.get("minute", 0),
            fields.get("second", 0),
            nanosecond // 1000,
            zone,
        )
        if "year_day" in fields:
            at = at.replace(month=1, day=1) + timedelta(days=fields["year_day"] - 1)
    except (ValueError, OverflowError):
        return None
    return Moment(at, nanosecond)

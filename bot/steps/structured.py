"""Messages that are written as a structure: JSON, YAML or XML."""

from __future__ import annotations

from xml.etree import ElementTree

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.json import parse_json
from bot.ports import TerminalError
from bot.steps.parsing import parse_yaml


def read_structure(text: str, encoding: str, where: str) -> dict[str, Json]:
    """The mapping that a text holds; raises TerminalError if it holds none. `where` begins the error."""
    try:
        match encoding:
            case "json":
                document = parse_json(text)
            case "yaml":
                document = parse_yaml(text)
            case _:
                document = _parse_xml(text, where)
    except (EditError, ElementTree.ParseError) as error:
        raise TerminalError(f"{where}: the message is no valid {encoding}: {error}") from error
    if not isinstance(document, dict):
        raise TerminalError(f"{where}: the message must be a mapping in {encoding}")
    return document


def _parse_xml(text: str, where: str) -> Json:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise TerminalError(f"{where}: the message declares a document type, which is not read")
    return _of_element(ElementTree.fromstring(text))


def _of_element(element: ElementTree.Element) -> Json:
    """Children and attributes by name, several of a name as a list; a leaf is its text."""
    held: dict[str, Json] = dict(element.attrib)
    for child in element:
        value, known = _of_element(child), held.get(child.tag)
        if child.tag not in held:
            held[child.tag] = value
        elif isinstance(known, list):
            known.append(value)
        else:
            held[child.tag] = [known, value]
    text = (element.text or "").strip()
    if not held:
        return text
    return {**held, "#text": text} if text else held

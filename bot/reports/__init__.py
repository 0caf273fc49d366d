"""Views of the domain as Markdown and check runs; nothing here decides anything."""

"""Nouns, events and decisions of a promotion; nothing here touches the world."""

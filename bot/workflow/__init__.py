"""Durable work: from a webhook to its effect, one step at a time, each remembered before the next begins."""

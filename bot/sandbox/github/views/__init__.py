"""Records as the JSON of GitHub's REST API and webhooks: one module per resource, plain functions on a `Lens`."""

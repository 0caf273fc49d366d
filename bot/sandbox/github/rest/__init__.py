"""GitHub's REST API: one module per resource with its routes as a literal list, and the server that joins them."""

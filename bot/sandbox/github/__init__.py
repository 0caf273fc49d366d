"""A simulated GitHub: real Git, REST, GraphQL, webhooks and branch rules, on one directory."""

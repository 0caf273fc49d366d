"""One module per step kind; `all_steps` lists them."""

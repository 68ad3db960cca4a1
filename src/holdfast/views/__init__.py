"""Views: what a call returns, made from records and answers of commands."""

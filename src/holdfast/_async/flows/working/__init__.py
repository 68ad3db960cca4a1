"""What a worker says to its store: claim and settle in one step, remember effects, show that it lives, hear of cancellations."""

"""What a holder knows about its claim or lease, and how it is kept alive."""

"""What tests of Holdfast, and of programs that use it, are made of: a clock they can move, and proofs for every store."""

from holdfast.testing.clock import FakeClock

__all__ = ["FakeClock"]

"""The control plane: any store, served over HTTP."""

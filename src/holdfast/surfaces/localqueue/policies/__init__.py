"""The policies of localqueue: values behind the documented names."""

"""Parts of tools/vendor_check.py."""

"""What only this chip has: words of up to four images, one shift per instruction, bands of rows."""

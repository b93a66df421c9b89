"""Rules by which two units or two plans compute alike."""

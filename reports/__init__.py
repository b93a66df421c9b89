"""Results in other forms: drawings, reports, data sheets, and formats that other programs read."""

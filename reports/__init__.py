"""Results for people and for other programs: drawings, reports, data sheets, and formats that others read."""

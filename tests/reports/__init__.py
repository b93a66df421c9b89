"""What is made for readers: reports, data sheets, drawings, other programs' formats."""

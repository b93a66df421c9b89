"""Claims about algorithms: their language, their verdicts, their stages."""

"""The families of published units: functions from their own parameters to an expression."""

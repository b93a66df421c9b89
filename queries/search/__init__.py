"""The search for inputs on which two models differ: the problem, samples, witnesses."""

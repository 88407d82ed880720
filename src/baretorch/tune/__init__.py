"""Search for the best model that a board can hold: precision per layer, fewer channels, other weights.

workbench  measures the costs and the accuracy of a choice
shrink     removes the least important channels and weights, and compensates for them
refine     rounds weights, corrects biases and calls train() of the model file so that accuracy improves
plan       measures the harm of each choice, and selects the choices that a search begins with
study      distributes trials to any number of processes
result     orders candidates, and holds the result
tune       measures, improves and confirms candidates
search     runs all of it
"""

"""Search for the best model that a board can hold: precision per layer, fewer channels, other weights.

workbench  measures the costs and the accuracy of a choice
shrink     removes the least important channels and weights, and compensates for them
refine     rounds weights and corrects biases so that accuracy improves
retrain    trains a candidate with the train() of the model file
plan       measures the harm of each choice, and selects the choices that a search begins with
study      distributes trials to any number of processes
result     orders candidates, and holds the result
tune       measures, improves and confirms candidates
search     runs all of it
"""

"""Pages for people who would rather look than read: the report of a run, and the explorer of one model.

One small ES module of our own draws neighbourhoods (`static/drawing.js`); the report, the explorer and the notebook's
widget use it. Nothing is loaded from the network.
"""

"""Tasks of trained networks: samples, and a score between 0 and 1 of what a program makes of them.

`material` is what samples are made of, `faces` and `text` make them, `detections` and `reading` judge outputs,
`networks` is the table of networks, `reference` their float32 and int8 elsewhere, `table` the page that keeps scores.
Samples are drawn and pasted: they compare a program with float32 and say nothing of photos in the field.
"""

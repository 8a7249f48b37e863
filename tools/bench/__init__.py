"""The same networks on this package and on its peers, side by side.

    python -m tools.bench                                   MobileNet v1 and v2 on all there is
    python -m tools.bench resnet_50 face_landmark --rounds 20
    python -m tools.bench --python ncnn=/path/to/venv/bin/python --out results

Each engine runs in a process of its own, with a Python of its own where one is given. Engines take
turns, round after round, so that a machine that slows down slows all of them. What can't run is
left out with the reason. Results: a table, results.json and results.svg.
"""

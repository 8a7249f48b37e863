"""What is kept in `cache_dir` between processes, apart from the driver's pipelines.

Which operators a device takes (`plans`), compiled programs with their packed weights (`programs`),
and the sizes that tuning chose (`tuning`). Everything in a file counts for one device, driver,
version of this package and model only; whatever does not fit is as if it were not there.
"""

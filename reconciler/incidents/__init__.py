"""The incident branch: paths, file formats, digests, and whether a repair record may be carried out. Pure.

Bot and reconciler both use this package; no other package knows the names or the contents of the files.
"""

"""The embedded control plane: store, API server and TLS listener of one data directory, started and stopped as one.

    DIRECTORY/
      kubeconfig                      admin of the root cluster; there (mode 0600) exactly while the server is ready
      clusters/<namespace>/<name>/kubeconfig    the same for each logical cluster
      pki/                            the CA and keys
      store.sqlite ...                every object and its recent history
"""

// etcd, for the tests of the cluster: releases are built of one module, and so is this.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }

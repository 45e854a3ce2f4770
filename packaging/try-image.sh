#!/bin/sh
# Builds the image of packaging/Containerfile, on a Debian that is fetched with debootstrap instead of from a
# registry, runs it in a separate network, and sends it requests. `cargo xtask package` has to be run
# before. Needs root, buildah, debootstrap and ldap-utils.
set -eu
cd "$(dirname "$0")/.."

space=$(mktemp -d)
images="buildah --storage-driver vfs --root $space/images --runroot $space/run"
finish() {
    $images umount --all > /dev/null 2>&1 || true
    rm -rf "$space"
}
trap finish EXIT

debootstrap --variant=minbase bookworm "$space/base" > "$space/debootstrap.log" ||
    { cat "$space/debootstrap.log"; exit 1; }
container=$($images from scratch)
$images add -q "$container" "$space/base" /
$images commit -q "$container" localhost/base
$images rm "$container" > /dev/null
$images bud --isolation chroot --build-arg BASE=localhost/base -t keyway -f packaging/Containerfile .

container=$($images from keyway)
# buildah does not run the entry point: this is the one of the file.
command=$(sed -n '/^ENTRYPOINT/,$p' packaging/Containerfile | tr -d '\\\n",[]' | sed 's/^ENTRYPOINT//')
export LDAPTLS_REQCERT=never LDAPCONF=/dev/null
unshare --mount --net --pid --fork --mount-proc --kill-child sh -c '
    ip link set lo up
    '"$images run --isolation chroot --user 800:800 $container -- $command > $space/output 2>&1"' &
    server=$!
    # A refused connection means that the server is not ready yet.
    until ldapsearch -x -LLL -ZZ -H ldap://localhost:1389 -s base -b "" vendorVersion; do
        kill -0 $server || exit 1
    done 2> '"$space/answers"'
    ldapwhoami -x -H ldaps://localhost:1636
    ps -eo user,args | grep -q "^800 .*/keyway ldapd" || exit 1
' || { cat "$space/output" "$space/answers"; echo "try-image: FAILED"; exit 1; }
echo "try-image: all as it should be"

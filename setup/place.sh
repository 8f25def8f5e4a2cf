#!/bin/bash
# Put what was built where it is looked for: setup/place.sh FOLDER STAMP FILE…
# Under another name first, then renamed. Man pages go to FOLDER/man, libraries to lib, the hook of OpenPBS
# to openpbs, all else to bin. What is not newer than its copy is left alone.
set -euo pipefail

readonly folder=$1 stamp=$2
shift 2
mkdir -p "$folder"/{bin,lib,man,openpbs}

for file; do
    name=${file##*/}
    case $name in
    *.so) to=$folder/lib ;;
    *.[18]) to=$folder/man ;;
    *.py) to=$folder/openpbs ;;
    *) to=$folder/bin ;;
    esac
    [[ ! $to/$name -nt $file ]] || continue
    cp "$file" "$to/.$name.new"
    mv -f "$to/.$name.new" "$to/$name"
done
touch "$stamp"

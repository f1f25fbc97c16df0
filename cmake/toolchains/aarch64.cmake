# Debian's cross compiler for arm64, with the libraries that tools/arm64_packages.sh unpacked into HEADROOM_ARM64_ROOT, and
# qemu's user-mode emulator to run what was built. tools/test_arm64.sh uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_FLAGS_INIT -Wno-stringop-overread)  # g++ 12 warns of strings that are moved (PR 105651)

set(HEADROOM_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/arm64-packages/root CACHE PATH "Folder of unpacked arm64 packages")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEADROOM_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${HEADROOM_ARM64_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(headroom_arm64_libraries ${HEADROOM_ARM64_ROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${headroom_arm64_libraries}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${headroom_arm64_libraries})

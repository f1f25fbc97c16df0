# The CUDA device is built when nvcc is found (HEADROOM_CUDA=AUTO), always (ON, an error without nvcc) or never (OFF).
# Sets HEADROOM_HAS_CUDA. The toolkit is found through PATH, CUDACXX or CUDAToolkit_ROOT; the program links the CUDA
# runtime statically and opens the driver and the outside libraries (cuBLASLt, cuDNN, NVML) only when a device is asked
# for, so that it runs on a machine without any of them.
set(HEADROOM_HAS_CUDA FALSE)
if(NOT HEADROOM_CUDA)
  return()
endif()

if(NOT HEADROOM_CUDA_ARCHITECTURES)
  # Machine code for Turing to Hopper; what is newer compiles the last one's PTX when it loads.
  set(HEADROOM_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90" CACHE STRING "GPU architectures to build for")
endif()
set(CMAKE_CUDA_ARCHITECTURES "${HEADROOM_CUDA_ARCHITECTURES}")

include(CheckLanguage)
if(CUDAToolkit_ROOT AND NOT CMAKE_CUDA_COMPILER AND EXISTS "${CUDAToolkit_ROOT}/bin/nvcc")
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_ROOT}/bin/nvcc")
endif()
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # Warnings of the host compiler but those that nvcc's own code raises.
  string(APPEND CMAKE_CUDA_FLAGS " --Werror all-warnings -Xcompiler=-Wall,-Wextra,-Wno-unused-parameter")
  if(HEADROOM_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${HEADROOM_CCACHE})
  endif()
  set(HEADROOM_HAS_CUDA TRUE)
elseif(NOT HEADROOM_CUDA STREQUAL "AUTO")
  message(FATAL_ERROR "HEADROOM_CUDA=${HEADROOM_CUDA}, but no CUDA compiler was found: set CUDACXX or CUDAToolkit_ROOT")
endif()
message(STATUS "CUDA device: ${HEADROOM_HAS_CUDA}")

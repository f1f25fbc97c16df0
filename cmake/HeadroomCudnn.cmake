# The headers of cuDNN (cudnn.h) and of its frontend (cudnn_frontend.h, 1.32 or later), which attention on CUDA devices is
# built with when they are found: below HEADROOM_CUDNN_ROOT (an installation, or a folder where pip has put NVIDIA's
# packages), the toolkit, or the compiler's own paths. Sets HEADROOM_HAS_CUDNN, and makes the target
# headroom_cudnn_headers. Nothing links the library: the program opens libcudnn.so.9 when a device is asked for.
set(HEADROOM_CUDNN_ROOT "" CACHE PATH "Where cuDNN and its frontend are installed, if not with the toolkit")
set(hints HINTS ${HEADROOM_CUDNN_ROOT} ENV CUDAToolkit_ROOT ${CUDAToolkit_ROOT} ${CUDAToolkit_INCLUDE_DIRS}
    PATHS /usr/local/cuda PATH_SUFFIXES include nvidia/cudnn/include nvidia/cu13/include)
find_path(HEADROOM_CUDNN_INCLUDE cudnn.h ${hints})
find_path(HEADROOM_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h ${hints})
find_path(HEADROOM_CUDA_INCLUDE cuda.h ${hints})
find_library(HEADROOM_CUDNN_LIBRARY NAMES libcudnn.so.9 HINTS ${HEADROOM_CUDNN_ROOT}
             PATH_SUFFIXES lib lib64 nvidia/cudnn/lib DOC "cuDNN for the tests")
mark_as_advanced(HEADROOM_CUDNN_INCLUDE HEADROOM_CUDNN_FRONTEND_INCLUDE HEADROOM_CUDA_INCLUDE)

set(HEADROOM_HAS_CUDNN FALSE)
if(HEADROOM_CUDNN_INCLUDE AND HEADROOM_CUDNN_FRONTEND_INCLUDE AND HEADROOM_CUDA_INCLUDE)
  file(STRINGS ${HEADROOM_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend_version.h minor REGEX "MINOR_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" minor "${minor}")
  if(minor GREATER_EQUAL 32)
    set(HEADROOM_HAS_CUDNN TRUE)
    add_library(headroom_cudnn_headers INTERFACE)
    target_include_directories(headroom_cudnn_headers SYSTEM INTERFACE
      ${HEADROOM_CUDNN_INCLUDE} ${HEADROOM_CUDNN_FRONTEND_INCLUDE} ${HEADROOM_CUDA_INCLUDE})
    target_compile_definitions(headroom_cudnn_headers INTERFACE
      NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING CUDNN_FRONTEND_SKIP_JSON_LIB)
  endif()
endif()
message(STATUS "cuDNN's attention: ${HEADROOM_HAS_CUDNN}")

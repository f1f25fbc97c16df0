// A driver without a device, in place of libcuda.so.1. While preparing a call, cuDNN asks it to load compiled code and
// looks for the functions for launching it.
#include <cstdint>

extern "C" {

int cuInit(unsigned) { return 100; }  // CUDA_ERROR_NO_DEVICE
int cuDeviceGetCount(int* count) {
  *count = 0;
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "no device";
  return 0;
}
int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  *library = reinterpret_cast<void*>(uintptr_t{1});
  return 0;
}
int cuLibraryGetKernel(void** kernel, void* library, const char*) {
  *kernel = library;
  return 0;
}
int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return 0;
}
int cuLibraryUnload(void*) { return 0; }

#define HR_NO_DEVICE(name) \
  int name() { return 100; }
HR_NO_DEVICE(cuCtxGetCurrent)
HR_NO_DEVICE(cuCtxGetLimit)
HR_NO_DEVICE(cuCtxPopCurrent)
HR_NO_DEVICE(cuCtxPushCurrent)
HR_NO_DEVICE(cuDeviceGet)
HR_NO_DEVICE(cuDriverGetVersion)
HR_NO_DEVICE(cuGetErrorName)
HR_NO_DEVICE(cuKernelGetAttribute)
HR_NO_DEVICE(cuKernelSetAttribute)
HR_NO_DEVICE(cuLaunchCooperativeKernel)
HR_NO_DEVICE(cuLaunchKernel)
HR_NO_DEVICE(cuLaunchKernelEx)
HR_NO_DEVICE(cuLibraryLoadFromFile)
HR_NO_DEVICE(cuLinkAddData)
HR_NO_DEVICE(cuLinkComplete)
HR_NO_DEVICE(cuLinkCreate)
HR_NO_DEVICE(cuLinkDestroy)
HR_NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
HR_NO_DEVICE(cuStreamGetCtx)
#undef HR_NO_DEVICE

}  // extern "C"

#include "doctor/messages/log_filter.h"

#include <string_view>

#include "doctor/messages/resources.h"

namespace headroom::doctor {
namespace {

constexpr std::string_view kMessageWords[] = {
    // "out of memory" in all spellings, and requests
    "of memory", "ofmemory", "of_memory", "of-memory", "to allocate", "an't alloc", "not alloc", "allocating tensor",
    "enough memory", "enough gpu mem", "insufficient mem", "insufficient gpu", "exhausted", "memoryallocation",
    "memory allocation", "has a total cap", "is reserved by pytorch", "total capacity", "bad_alloc", "errno 12",
    "posix_memalign", "allocation of", "attempting to", "memory space", "failed to alloc", "unable to mmap",
    // killed processes and how launchers report them
    "oom-kill", "oom_kill", "oom kill", "oomkill", "killed", "killing sub", "virtual memory", "kill process", "sigkill",
    "exit code", "exitcode", "return code", "exit status", "with code", "error code", "status code", "退出码",
    "終了コード", "signal 9", "bus error", "memory limit", "memory: usage", "low on memory", "low on resource",
    "memory pressure",
    // libraries
    "alloc_failed", "not_initialized", "cuda failure", "cuda error", "runtime error", "cublas_status", "cudnn_status",
    "cudnn algorithm", "cudnn convolution", "find an engine", "nccl warn", "failed to extend", "memory segment",
    "shared memory", "torch_", "dataloader worker", "el0004", "erroroutof", "out_of_device", "out_of_resources",
    "dst tensor", "create session", "buffer size", "paging file", "页面文件", "頁面檔", "分页文件", "ページング",
    "cannot malloc", "available memory of", "[metal", "[malloc", "could not be allocated",
    // servers
    "cache blocks", "in kv cache", "kv cache is", "max seq len", "mem-fraction", "memory on device", "memory profiling",
    "warming up", "prefill tokens", "total tokens", "ggml_", "buffer for kv", "memory pool", "system memory",
    "too large for system", "runner process"};
// The start of a frame: Python's "file \"", IPython's "file ~/" and ".py in ", Rich's bar, C++'s "frame #".
constexpr std::string_view kFrameWords[] = {"file \"", "file \\\"",      "file ~/", "file /",
                                            ".py in ", "\xe2\x94\x82 /", "frame #"};
constexpr std::string_view kSampleWords[] = {
    "memory",   " mem ",  " mem:",   " mem=",  "_mem ",  "_mem:",     "_mem=",  "_mem\"", "mem_al",
    "mem_re",   "mem_us", "\"mem\"", "mem_gb", "mem_mb", "vram ",     "vram:",  "vram=",  "vram_",
    "vram\"",   "mem (",  "mem(g",   "mem(m",  "mem/m",  "allocated", "alloc:", "alloc=", "alloc ",
    "reserved", "resrvd", "cached",  "rss: ",  "rss= ",  "_rss:",     "_rss=",  "rss\":", "rss ("};
constexpr std::string_view kEventWords[] = {"evaluat", "validat", "saving", "checkpoint"};

}  // namespace

std::vector<WordScan::Word> filter_words() {
  std::vector<WordScan::Word> words;
  for (const auto word : kMessageWords) words.push_back({word, kMessage});
  for (const auto word : kFrameWords) words.push_back({word, kFrame});
  for (const auto word : ResourceReader::words()) words.push_back({word, kResource});
  for (const auto word : kSampleWords) words.push_back({word, kSample});
  for (const auto word : kEventWords) words.push_back({word, kEvent});
  words.push_back({"traceback (most", kTraceback});
  return words;
}

const WordScan& log_filter() {
  static const WordScan filter(filter_words());
  return filter;
}

}  // namespace headroom::doctor

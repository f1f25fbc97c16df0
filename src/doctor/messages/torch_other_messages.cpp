// PyTorch outside the CUDA allocators: Apple's MPS, the CPU allocator, data loader workers, and errors of NumPy and the
// C++ runtime when host memory runs out.
#include <array>

#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

// "MPS backend out of memory (MPS allocated: 17.68 GB, other allocations: 3.95 MB, max allowed: 18.13 GB). Tried to
// allocate 1024.00 MB on private pool." Older versions print GB, newer ones GiB; both mean 1024^3.
bool mps(Reading& r) {
  constexpr uint32_t kUnits = kIec | kSi;
  const size_t start = r.trigger();
  struct Part {
    std::string_view words;
    const ByteField* field;
  };
  constexpr std::array<Part, 3> kParts = {
      {{"mpsallocated:", &kAllocated}, {"otherallocations:", &kOtherAllocations}, {"maxallowed:", &kCapacity}}};
  size_t at = start;
  for (const Part& part : kParts) {
    if (const auto end = r.after(part.words, at, 60)) {
      r.amount(*end, kUnits, *part.field);
      at = *end;
    }
  }
  if (const auto tried = r.after("triedtoallocate", at, 60)) {
    r.amount(*tried, kUnits, kRequested);
    r.after("maycausesystemfailure).", *tried, 200);
  }
  const auto text = r.text().view().substr(start, r.end() - start);
  r.identify("pytorch-mps", text.find("gib") != std::string_view::npos ? "mps_gib" : "mps_gb");
  return true;
}

// A message whose start is cut off.
bool mps_headless(Reading& r) {
  const auto requested = quantity_at(r.text(), r.body(), kIec | kSi);
  if (!requested || (!r.at(requested->end, "onprivatepool") && !r.at(requested->end, "onsharedpool"))) return false;
  r.amount(r.body(), kIec | kSi, kRequested);
  r.extend(requested->end + 12);
  r.identify("pytorch-mps", "mps_cut");
  return true;
}

// "Invalid buffer size: 12.00 GB": Metal does not allow a single buffer of that size.
bool mps_buffer(Reading& r) {
  if (!r.amount(r.body(), kIec | kSi, kRequested)) return false;
  r.hint("single_allocation_limit");
  r.identify("pytorch-mps", "mps_buffer");
  return true;
}

// "DefaultCPUAllocator: can't allocate memory: you tried to allocate 132426121216 bytes. Error code 12 (...)", on
// Windows "not enough memory: you tried to allocate ... bytes.", before 1.0 "$ Torch: not enough memory: you tried to
// allocate 12GB. Buy new RAM!" (whole GiB, rounded down).
bool cpu_allocator(Reading& r) {
  const auto tried = r.after("youtriedtoallocate", r.trigger(), 80);
  const bool old = r.before(r.trigger(), "torch:") || r.at(r.trigger(), "torch:");
  const bool windows = r.follows("notenoughmemory", r.trigger(), 60);
  if (!tried && !r.at(r.trigger(), "defaultcpuallocator:")) return false;
  if (tried) {
    r.amount(*tried, old ? kIec | kSi : kIec, kRequested);
    r.after("(cannotallocatememory)", *tried, 60);
    r.after("buynewram!", *tried, 40);
  } else {
    r.after("memory", r.trigger(), 40);
  }
  r.identify("pytorch-cpu", old ? "cpu_torch" : windows ? "cpu_win" : "cpu_unix");
  r.hint("host_ram");
  return true;
}

// "posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0"
bool cpu_memalign(Reading& r) {
  r.after("12vs0", r.trigger(), 40);
  r.identify("pytorch-cpu", "cpu_old");
  r.hint("host_ram");
  return true;
}

// "unable to mmap 4976698672 bytes from file </model.safetensors>: Cannot allocate memory (12)"; posts often end it
// behind the bytes.
bool cpu_mmap(Reading& r) {
  const auto requested = quantity_at(r.text(), r.body(), kIec);
  if (!requested) return false;
  const bool cut = !r.at(requested->end, "fromfile");
  if (!cut && !r.follows("cannotallocatememory", r.trigger(), 300)) return false;
  r.amount(r.body(), kIec, kRequested);
  r.after("cannotallocatememory", r.trigger(), 300);
  r.identify("pytorch-cpu", "cpu_mmap");
  r.phase("load", "mmap of a file");
  r.hint("host_ram");
  return true;
}

// "Unable to allocate 1.23 GiB for an array with shape (...) and data type float64": NumPy.
bool numpy(Reading& r) {
  const auto requested = quantity_at(r.text(), r.body(), kIec);
  if (!requested || !r.at(requested->end, "foranarray")) return false;
  r.amount(r.body(), kIec, kRequested);
  r.after("datatype", requested->end, 200);
  r.identify("python", "numpy");
  r.phase("host_ram", "array in host memory");
  r.hint("host_ram");
  return true;
}

// "OSError: [Errno 12] Cannot allocate memory", "terminate called after throwing ... 'std::bad_alloc'"
bool host_allocation(Reading& r) {
  r.identify("python", "host_allocation");
  r.phase("host_ram", "allocation in host memory");
  r.hint("host_ram");
  return true;
}

// "MemoryError" or "Cannot allocate memory" alone on its line, from Python or the system.
bool bare_host_allocation(Reading& r) {
  const size_t begin = r.trigger();
  const bool starts = begin == 0 || r.text().line_gap(begin),
             ends = r.body() >= r.size() || r.text().line_gap(r.body());
  return starts && ends && host_allocation(r);
}

// "DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that dataloader's workers are out of
// shared memory.", "... by signal: Killed.", "DataLoader worker (pid(s) 123, 124) exited unexpectedly"
bool data_loader(Reading& r) {
  const bool bus = r.follows("buserror", r.trigger(), 120);
  const bool killed = r.follows("killed.", r.trigger(), 80) || r.follows("signal:killed", r.trigger(), 80);
  const bool exited = r.follows("exitedunexpectedly", r.trigger(), 160);
  if (!bus && !killed && !exited) return false;
  if (const auto pid = r.after("(pid", r.trigger(), 24)) r.message.pid = r.number(r.at(*pid, "(s)") ? *pid + 3 : *pid);
  if (!r.after("sharedmemorylimit", r.trigger(), 300)) {
    r.after(bus ? "buserror" : killed ? "killed" : "unexpectedly", r.trigger(), 160);
  }
  r.identify("pytorch-dataloader", bus ? "shm_bus" : killed ? "worker_killed" : "worker_exited");
  r.phase("data", "a data-loader worker");
  r.hint(bus ? "shared_memory" : "host_ram");
  return true;
}

// "unable to write to file </torch_123_456>", "unable to open shared memory object </torch_...>", "unable to resize
// file </torch_...> to the right size": /dev/shm is full.
bool torch_shared_memory(Reading& r) {
  if (!r.follows("</torch_", r.trigger(), 40)) return false;
  r.after(">", r.trigger(), 100);
  r.after("nospaceleftondevice", r.trigger(), 200);
  r.identify("pytorch-dataloader", "shm_file");
  r.phase("data", "shared memory of data-loader workers");
  r.hint("shared_memory");
  return true;
}

// "Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."
bool worker_shared_memory(Reading& r) {
  r.identify("pytorch-dataloader", "shm_bus");
  r.phase("data", "shared memory of data-loader workers");
  r.hint("shared_memory");
  return true;
}

// "OSError: [WinError 1455] The paging file is too small for this operation to complete."
bool paging_file(Reading& r) {
  r.identify("python", "paging_file");
  r.phase("host_ram", "Windows' paging file");
  r.hint("host_ram");
  return true;
}

}  // namespace

void add_torch_other_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"mps", "mpsbackendoutofmemory", mps});
  table.push_back({"mps_headless", "triedtoallocate", mps_headless});
  table.push_back({"mps_buffer", "invalidbuffersize:", mps_buffer});
  table.push_back({"cpu_allocator", "defaultcpuallocator:", cpu_allocator});
  table.push_back({"cpu_allocator", "notenoughmemory:youtried", cpu_allocator});
  table.push_back({"cpu_allocator", "youtriedtoallocate", cpu_allocator});
  table.push_back({"cpu_memalign", "posix_memalign(&data", cpu_memalign});
  table.push_back({"cpu_mmap", "unabletommap", cpu_mmap});
  table.push_back({"numpy", "unabletoallocate", numpy});
  table.push_back({"host_allocation", "[errno12]", host_allocation});
  table.push_back({"host_allocation", "'std::bad_alloc'", host_allocation});
  table.push_back({"host_allocation", "memoryerror:std::bad_alloc", host_allocation});
  table.push_back({"bare_host_allocation", "memoryerror", bare_host_allocation});
  table.push_back({"bare_host_allocation", "cannotallocatememory", bare_host_allocation});
  table.push_back({"data_loader", "dataloaderworker(pid", data_loader});
  table.push_back({"worker_shm", "insufficientsharedmemory", worker_shared_memory});
  for (const std::string_view words :
       {"pagingfileistoosmall", "页面文件太小", "頁面檔太小", "分页文件太小", "ページングファイルが小さすぎ"})
    table.push_back({"paging_file", words, paging_file});
  table.push_back({"torch_shm", "unabletowritetofile<", torch_shared_memory});
  table.push_back({"torch_shm", "unabletoopensharedmemoryobject", torch_shared_memory});
  table.push_back({"torch_shm", "unabletoresizefile", torch_shared_memory});
}

}  // namespace headroom::doctor

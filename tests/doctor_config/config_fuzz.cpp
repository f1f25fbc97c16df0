// Any text as a configuration of any kind: every key is in exactly one list, and edits of understood keys read back.
#include <cstdlib>

#include "base/error.h"
#include "doctor/config/config_reader.h"
#include "doctor/config/defaults.h"
#include "doctor/config/patch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  using namespace headroom::doctor;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"f.yaml", "f.json", "f.py", "f.sh", "f.ipynb", "f"}) try {
      const ConfigReading reading = read_config_text(name, text);
      const Job& job = reading.job;
      const auto keys = job.keys.understood.size() + job.keys.irrelevant.size() + job.keys.unknown.size() +
                        job.keys.unreadable.size();
      if (static_cast<int64_t>(keys) != reading.keys) abort();
      if (effective_micro_batch(job) < 1) abort();
      if (!job.keys.understood.empty())
        patch_config(name, reading.sources[0].kind, text,
                     {{job.keys.understood[0].origin.key, "1", job.keys.understood[0].origin.line}});
    } catch (const Error&) {
    }
  return 0;
}

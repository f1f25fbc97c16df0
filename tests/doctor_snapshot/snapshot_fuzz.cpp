// Any bytes are refused with an Error or give an analysis with consistent figures.
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "doctor/snapshot/read_snapshot.h"
#include "doctor/snapshot/snapshot_output.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  try {
    const doctor::Snapshot snapshot =
        doctor::read_snapshot(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    const doctor::SnapshotAnalysis analysis = doctor::analyse_snapshot(snapshot);
    for (const doctor::DeviceAnalysis& device : analysis.devices) {
      int64_t sum = 0;
      for (const int64_t bytes : device.peak.by_class) sum += bytes;
      if (sum != device.peak.allocated_bytes || device.peak.allocated_bytes < device.end.allocated_bytes) abort();
      for (const doctor::TimelineColumn& column : device.timeline)
        if (column.allocated_bytes < 0 || column.allocated_bytes > device.peak.allocated_bytes ||
            column.reserved_bytes > device.peak_reserved_bytes)
          abort();
    }
    doctor::snapshot_text(analysis, false);
    doctor::snapshot_text(analysis, true);
    doctor::snapshot_svg(analysis);
    doctor::snapshot_json(analysis).dump();
  } catch (const Error&) {
  }
  return 0;
}

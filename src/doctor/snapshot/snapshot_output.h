// A snapshot's analysis as text, as JSON and as a drawing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

// At most 20 lines of at most 80 columns for the device that failed or has the highest peak, with a chart of its memory
// over time. `verbose` adds the other devices, whole stacks and all tables. Ends with a line feed.
std::string snapshot_text(const SnapshotAnalysis& analysis, bool verbose);

// A chart of `columns` x `rows` characters: allocated bytes over events as blocks, with the peak marked. Empty without
// a trace. Lines end with a line feed.
std::string draw_text_timeline(const DeviceAnalysis& device, int columns = 72, int rows = 5);

// A self-contained SVG document (no scripts, fonts or links), readable in light and dark mode: stacked areas of the
// allocated bytes by class, a line of the reserved bytes, marks at the peak and at out-of-memory events. One device
// below the other; empty without a trace.
std::string snapshot_svg(const SnapshotAnalysis& analysis);

// {"source", "devices": [{"device", "peak": {...}, "failure": {...}, "fragmentation": {...}, "growth": {...}}],
// "allocator_settings", "notes"}; bytes are integers, classes are memory_class_name(). Always valid UTF-8.
nlohmann::json snapshot_json(const SnapshotAnalysis& analysis);

}  // namespace headroom::doctor

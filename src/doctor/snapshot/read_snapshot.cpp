#include "doctor/snapshot/read_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "doctor/snapshot/clean_text.h"
#include "doctor/snapshot/pickle_record.h"
#include "doctor/snapshot/stack_reader.h"

namespace headroom::doctor {
namespace {

constexpr size_t kMostDevices = 1024;

TraceAction action_of(std::string_view name) {
  static constexpr struct {
    const char* name;
    TraceAction action;
  } kActions[] = {
      {"alloc", TraceAction::alloc},
      {"free_completed", TraceAction::free_completed},
      {"free_requested", TraceAction::free_requested},
      {"free", TraceAction::free_completed},
      {"segment_alloc", TraceAction::segment_alloc},
      {"segment_free", TraceAction::segment_free},
      {"segment_map", TraceAction::segment_map},
      {"segment_unmap", TraceAction::segment_unmap},
      {"snapshot", TraceAction::snapshot},
      {"oom", TraceAction::oom},
  };
  for (const auto& row : kActions)
    if (name == row.name) return row.action;
  return TraceAction::other;
}

BlockState state_of(std::string_view name) {
  if (name == "active_allocated") return BlockState::allocated;
  return name.substr(0, 6) == "active" ? BlockState::pending_free : BlockState::inactive;
}

class SnapshotReader {
 public:
  SnapshotReader(std::string_view bytes, const std::string& source)
      : document_(read_pickle(bytes, source)),
        source_(source),
        record_(document_, source_),
        stacks_(document_),
        records_left_(bytes.size() / 4 + 16) {
    snapshot_.source = source;
  }

  Snapshot read() {
    const PickleValue root = document_.root();
    if (root.is(PickleKind::list)) {
      read_segments(document_.members(root));
    } else {
      read_dictionary(root);
    }
    snapshot_.stacks = stacks_.take();
    snapshot_.has_frames = snapshot_.stacks.stacks.size() > 1;
    return std::move(snapshot_);
  }

 private:
  // Counts every record, even when the pickle refers to the same one again, so that a small file cannot make a large
  // snapshot.
  void count_record() {
    if (records_left_-- == 0)
      throw Error(ErrorKind::format, fmt::format("{}: the pickle repeats the same records over and over", source_),
                  "bring the file that torch.cuda.memory._dump_snapshot wrote, unchanged");
  }

  void read_dictionary(PickleValue root) {
    record_.open(root, {});
    const auto segments = record_.entry("segments"), traces = record_.entry("device_traces");
    if (!segments && !traces) {
      record_.fail("a pickle, but no memory snapshot: it has neither 'segments' nor 'device_traces'");
    }
    const auto segment_list = record_.list("segments"), trace_list = record_.list("device_traces");
    const auto annotations = record_.list("external_annotations"), host = record_.list("host_segments");
    if (const auto settings = record_.entry("allocator_settings"); settings && settings->is(PickleKind::dict))
      read_settings(*settings);
    read_segments(segment_list);
    read_traces(trace_list);
    read_annotations(annotations);
    read_host_segments(host);
  }

  void read_settings(PickleValue settings) {
    record_.open(settings, {"allocator_settings", -1, -1});
    AllocatorSettings& out = snapshot_.settings;
    out.text = clean_text(record_.text("PYTORCH_CUDA_ALLOC_CONF"));
    if (out.text.empty()) out.text = clean_text(record_.text("PYTORCH_ALLOC_CONF"));
    if (const auto value = record_.entry("expandable_segments")) out.expandable_segments = document_.boolean(*value);
    const int64_t split = record_.integer("max_split_size", -1);
    if (split > 0 && split < int64_t{1} << 48) out.max_split_size = split;
    if (const auto value = record_.entry("garbage_collection_threshold"))
      out.garbage_collection_threshold = document_.real(*value);
  }

  void read_segments(PickleDocument::Cursor segments) {
    for (int64_t i = 0; !segments.done(); segments.next(), ++i) {
      count_record();
      record_.open(segments.value(), {"segments", i, -1});
      Segment out;
      out.device = device(record_.integer("device", 0));
      out.address = record_.address("address");
      out.total_size = record_.size("total_size");
      out.allocated_size = record_.size("allocated_size", 0);
      out.active_size = record_.size("active_size", 0);
      out.stream = record_.integer("stream", 0);
      out.large = record_.text("segment_type") != "small";
      out.expandable = record_.boolean("is_expandable");
      out.pool = pool("segment_pool_id");
      if (const auto frames = record_.entry("frames")) out.stack = stacks_.stack(*frames);
      read_blocks(record_.list("blocks"), i, out);
      snapshot_.segments.push_back(std::move(out));
    }
  }

  void read_blocks(PickleDocument::Cursor blocks, int64_t segment, Segment& out) {
    int64_t at = out.address, left = out.total_size;
    for (int64_t i = 0; !blocks.done(); blocks.next(), ++i) {
      count_record();
      record_.open(blocks.value(), {"segments", segment, i});
      Block block;
      block.address = at;
      block.size = record_.size("size");
      block.state = state_of(record_.text("state"));
      if (block.size > left) record_.fail("the blocks of the segment are larger than the segment");
      at += block.size;
      left -= block.size;
      if (block.state != BlockState::inactive) {
        block.requested_size = std::min(block.size, record_.size("requested_size", block.size));
        const auto frames = record_.entry("frames");
        if (frames) block.stack = stacks_.stack(*frames);
        if (!frames) read_history(block);
      }
      out.blocks.push_back(block);
    }
  }

  // PyTorch 1.12 to 2.0: the allocations that a block has held, the current one first.
  void read_history(Block& block) {
    const auto history = record_.list("history");
    if (history.done() || !history.value().is(PickleKind::dict)) return;
    record_.open(history.value(), {"segments", -1, -1});
    block.requested_size = std::min(block.size, record_.size("real_size", block.size));
    if (const auto frames = record_.entry("frames")) block.stack = stacks_.stack(*frames);
  }

  void read_traces(PickleDocument::Cursor traces) {
    for (int64_t device = 0; !traces.done(); traces.next(), ++device) {
      if (static_cast<size_t>(device) >= kMostDevices)
        record_.fail(fmt::format("'device_traces' has more than {} devices", kMostDevices));
      count_record();
      std::vector<TraceEvent>& out = snapshot_.device_traces.emplace_back();
      if (!traces.value().is(PickleKind::list)) record_.fail("'device_traces' is not a list of lists");
      int64_t number = 0;
      for (auto events = document_.members(traces.value()); !events.done(); events.next(), ++number) {
        count_record();
        record_.open(events.value(), {"device_traces", device, number});
        out.push_back(event());
      }
      snapshot_.has_trace = snapshot_.has_trace || !out.empty();
    }
  }

  TraceEvent event() {
    TraceEvent out;
    out.action = action_of(record_.text("action"));
    if (out.action == TraceAction::other) return out;
    out.address = out.action == TraceAction::oom ? record_.size("device_free", 0) : record_.address("addr");
    out.size = record_.size("size", 0);
    out.time_us = time();
    out.stream = stream(record_.integer("stream", 0));
    out.pool = pool_number(pool("pool_id"));
    if (out.action != TraceAction::free_requested && out.action != TraceAction::free_completed)
      if (const auto frames = record_.entry("frames")) out.stack = stacks_.stack(*frames);
    return out;
  }

  void read_annotations(PickleDocument::Cursor annotations) {
    for (int64_t i = 0; !annotations.done(); annotations.next(), ++i) {
      count_record();
      record_.open(annotations.value(), {"external_annotations", i, -1});
      Annotation out;
      out.name = clean_text(record_.text("name"), 120);
      out.stage = clean_text(record_.text("stage"), 20);
      out.device = record_.integer("device", 0);
      out.time_us = time();
      snapshot_.annotations.push_back(std::move(out));
    }
  }

  void read_host_segments(PickleDocument::Cursor segments) {
    for (int64_t i = 0; !segments.done(); segments.next(), ++i) {
      count_record();
      record_.open(segments.value(), {"host_segments", i, -1});
      snapshot_.pinned_host_bytes += record_.size("total_size", record_.size("size", 0));
    }
  }

  int64_t time() { return std::clamp<int64_t>(record_.integer("time_us", 0), 0, int64_t{1} << 60); }

  int64_t device(int64_t number) const {
    if (number < 0 || number >= static_cast<int64_t>(kMostDevices))
      record_.fail(fmt::format("device {} cannot be", number));
    return number;
  }

  PoolId pool(std::string_view name) {
    const auto value = record_.entry(name);
    if (!value) return {0, 0};
    auto cursor = document_.members(*value);
    PoolId out{0, 0};
    if (!cursor.done()) {
      out.first = document_.integer(cursor.value()).value_or(0);
      cursor.next();
    }
    if (!cursor.done()) out.second = document_.integer(cursor.value()).value_or(0);
    return out;
  }

  uint32_t pool_number(PoolId pool) {
    if (pool == PoolId{0, 0}) return 0;
    const auto [at, added] = pool_numbers_.emplace(pool, static_cast<uint32_t>(snapshot_.pools.size()));
    if (added) snapshot_.pools.push_back(pool);
    return at->second;
  }

  uint32_t stream(int64_t stream) {
    const auto [at, added] = stream_numbers_.emplace(stream, static_cast<uint32_t>(snapshot_.streams.size()));
    if (added) snapshot_.streams.push_back(stream);
    return at->second;
  }

  PickleDocument document_;
  const std::string& source_;
  RecordReader record_;
  StackReader stacks_;
  size_t records_left_;
  Snapshot snapshot_;
  std::map<PoolId, uint32_t> pool_numbers_;
  std::map<int64_t, uint32_t> stream_numbers_;
};

}  // namespace

Snapshot read_snapshot(std::string_view bytes, const std::string& source) {
  return SnapshotReader(bytes, source).read();
}

}  // namespace headroom::doctor

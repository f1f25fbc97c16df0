// A program's time on the runtime's streams.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "cost/call_costs.h"
#include "ir/graph.h"

namespace headroom {

// The lower tier that holds the values of a role.
using TierOf = std::function<Tier(Role)>;

// The kernels of a program with their seconds, and its copies, whose seconds depend on the tier that holds their
// values. Copies run concurrently with the kernels, as the runtime orders them: for each tier one stream into the
// device's memory and one out of it. A copy starts when its stream is free and all earlier kernels are done; a wait
// takes the time that the copy still needs.
class StreamTimeline {
 public:
  // Every loop of the program makes `trips` iterations; loops may be nested only one deep. Keeps no reference.
  StreamTimeline(const Graph& graph, RegionId program, const Bindings& bindings, int64_t trips, CallCosts& costs);

  // Seconds of one run with everything in the graph's tiers, or with the values of lower tiers moved to other ones.
  double seconds(const TierOf& tier_of = {}) const;

 private:
  struct Copy {
    Role role = Role::activation;
    Tier tier = Tier::host;           // the lower tier in the graph
    bool out = false;                 // of the device's memory
    std::array<double, 3> seconds{};  // by the lower tier
  };
  // Kernels of some seconds, or the index of a copy or loop.
  struct Event {
    enum Kind : uint8_t { kernels, start, wait, loop } kind = kernels;
    double seconds = 0;
    size_t index = 0;
  };

  void add_kernel(double seconds);
  void add_copy(const Graph& graph, const Node& node, const OpCall& call, const Profile& profile);

  int64_t trips_ = 1;
  std::vector<Event> events_;
  std::vector<Copy> copies_;
  std::vector<StreamTimeline> loops_;  // bodies
};

// StreamTimeline::seconds() of a program with the graph's own tiers.
double predict_program(const Graph& graph, RegionId program, const Bindings& bindings, int64_t trips,
                       const Profile& profile);

}  // namespace headroom

#include "planner/candidates.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "planner/techniques/chunked_loss.h"
#include "planner/techniques/offload.h"

namespace headroom {
namespace {

// In the order in which settings are decided: choices may read the earlier ones.
std::vector<const Technique*> decision_order() {
  std::vector<const Technique*> out;
  for (const PipelinePart part : {PipelinePart::placement, PipelinePart::model, PipelinePart::products,
                                  PipelinePart::sizes, PipelinePart::compute})
    for (const Technique* technique : techniques_of(part))
      if (technique->choices) out.push_back(technique);
  return out;
}

// Every combination of the settings that affect the candidate's graph.
std::vector<Candidate> places_of(const PlanRequest& request, const Candidate& candidate) {
  std::vector<Candidate> out{candidate};
  for (const Technique* technique : offload_techniques()) {
    const std::vector<Setting> settings = technique->same_graph(request, candidate);
    const std::vector<Candidate> so_far = out;
    for (size_t i = 1; i < settings.size(); ++i)
      for (Candidate placed : so_far) {
        placed[*technique] = settings[i];
        out.push_back(placed);
      }
  }
  return out;
}

void copy_places(const Candidate& from, Candidate& to) {
  for (const Technique* technique : techniques_of(PipelinePart::placement)) to[*technique] = from[*technique];
}

}  // namespace

std::vector<CandidateFamily> families(const PlanRequest& request) {
  const std::vector<const Technique*> order = decision_order();
  std::vector<CandidateFamily> out;
  Candidate candidate;
  const std::function<void(size_t)> decide = [&](size_t next) {
    if (next == order.size()) {
      out.push_back({candidate, places_of(request, candidate), loss_chunks(request, candidate)});
      return;
    }
    for (const Setting& setting : order[next]->choices(request, candidate)) {
      candidate[*order[next]] = setting;
      decide(next + 1);
    }
    candidate[*order[next]] = {};
  };
  decide(0);
  return out;
}

std::vector<CandidateFamily> refined_families(const PlanRequest& request, const std::vector<Candidate>& worth_taking) {
  std::vector<CandidateFamily> alike;
  std::vector<Candidate> graphs;
  for (const Candidate& candidate : worth_taking) {
    const Candidate graph = in_graph(request, candidate);
    const auto known = std::find(graphs.begin(), graphs.end(), graph);
    const auto at = static_cast<size_t>(known - graphs.begin());
    if (known == graphs.end()) graphs.push_back(graph), alike.push_back({candidate, {}, {}});
    const auto add = [](auto& to, const auto& value) {
      if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
    };
    Candidate place = alike[at].candidate;
    copy_places(candidate, place);
    add(alike[at].places, place);
    // Smaller chunks too: they were beaten where something else was larger than the loss, which a refinement may lower.
    for (const int64_t chunk : loss_chunks(request, candidate))
      if (chunk <= loss_chunk_of(candidate)) add(alike[at].chunks, chunk);
  }
  std::vector<CandidateFamily> out;
  for (const CandidateFamily& family : alike)
    for (const Technique* technique : all_techniques()) {
      if (!technique->refinements) continue;
      for (const Setting& setting : technique->refinements(request, family.candidate)) {
        CandidateFamily refined = family;
        refined.candidate[*technique] = setting;
        for (Candidate& place : refined.places) place[*technique] = setting;
        out.push_back(std::move(refined));
      }
    }
  return out;
}

CandidateFamily most_frugal(const PlanRequest& request) {
  Candidate candidate;
  for (const Technique* technique : decision_order()) {
    const std::vector<Setting> choices = technique->choices(request, candidate);
    candidate[*technique] = technique->least_first ? choices.front() : choices.back();
    if (!technique->refinements) continue;
    if (const std::vector<Setting> finer = technique->refinements(request, candidate); !finer.empty())
      candidate[*technique] = finer.front();
  }
  return {candidate, places_of(request, candidate), {loss_chunks(request, candidate).front()}};
}

std::vector<CandidateFamily> frugal_families(const PlanRequest& request) {
  std::vector<CandidateFamily> out{most_frugal(request)};
  for (const Technique* technique : all_techniques()) {
    if (!technique->process_bytes || !out.front().candidate[*technique].taken()) continue;
    if (!pin(request, technique->name()).empty()) continue;
    const std::vector<CandidateFamily> so_far = out;
    for (CandidateFamily without : so_far) {
      without.candidate = without.candidate.without(*technique);
      for (Candidate& place : without.places) place = place.without(*technique);
      without.chunks = {loss_chunks(request, without.candidate).front()};
      out.push_back(std::move(without));
    }
  }
  return out;
}

Candidate member(const CandidateFamily& family, const Candidate& place, int64_t chunk) {
  Candidate out = family.candidate;
  copy_places(place, out);
  set_loss_chunk_of(out, chunk);
  return out;
}

std::string describe(const Candidate& candidate) {
  std::vector<std::string> phrases;
  for (const PipelinePart part : {PipelinePart::sizes, PipelinePart::compute, PipelinePart::model})
    for (const Technique* technique : techniques_of(part))
      if (technique->phrase)
        if (std::string phrase = technique->phrase(candidate[*technique]); !phrase.empty())
          phrases.push_back(std::move(phrase));
  return fmt::format("{}", fmt::join(phrases, ", "));
}

}  // namespace headroom

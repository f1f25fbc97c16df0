#include "headroom/questions.h"

#include "api/asked_training.h"
#include "api/session.h"
#include "api/translate.h"
#include "engine/budget_plans.h"
#include "engine/plan_answers.h"
#include "engine/session_share.h"
#include "report/curve_page.h"
#include "report/plan_diff.h"

namespace headroom::api {
namespace {

PlanAnswer answer_curve(const AskedTraining& asked, const CommandWith& command) {
  const std::vector<headroom::Plan> plans = plans_by_budget(asked.options(), asked.model());
  const std::vector<std::string> commands = commands_of(plans, command);
  return {curve_json(plans, commands), report::curve_page(plans, commands, asked.options().machine.memory)};
}

PlanAnswer answer_to(PlanQuestion question, const AskedTraining& asked, const Callbacks& callbacks) {
  const auto command = [&](const OptionValues& changes) { return asked.command(changes); };
  switch (question) {
    case PlanQuestion::minimum:
      return answer_minimum(asked.options(), asked.model(), command);
    case PlanQuestion::ladder:
      return answer_ladder(asked.options(), asked.model());
    case PlanQuestion::curve:
      return answer_curve(asked, command);
    case PlanQuestion::measure:
      return answer_measure(asked.options(), asked.model(), command, callbacks.note);
  }
  throw Error(ErrorKind::usage, "this is not a question about plans", "ask one of PlanQuestion");
}

Answer answer_of(PlanAnswer answer) { return {std::move(answer.json), std::move(answer.text)}; }

}  // namespace

Answer Session::ask(PlanQuestion question, const Options& options, const Callbacks& callbacks) const {
  return translating([&] {
    const SessionShare share;
    const OtherCall call(impl_->kept);
    return answer_of(
        answer_to(question, AskedTraining(impl_->model, impl_->options, options, share, ForWhat::plan), callbacks));
  });
}

Answer suggest_models(const std::string& directory, const Options& options) {
  return translating([&] {
    const SessionShare share;
    return answer_of(answer_models(AskedTraining(directory, {}, options, share, ForWhat::plan).options(), directory));
  });
}

Answer compare_plans(const std::string& plan_a, const std::string& plan_b) {
  return translating([&]() -> Answer {
    const report::PlanDiff diff = report::plan_diff(plan_a, plan_b);
    return {report::diff_json(diff), report::diff_text(diff)};
  });
}

}  // namespace headroom::api

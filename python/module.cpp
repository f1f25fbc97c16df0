// The Python module headroom._engine: the public API of include/headroom, unchanged; python/headroom/*.py builds the
// package's interface on it.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "headroom/headroom.h"

namespace py = pybind11;
namespace api = headroom::api;

namespace {

// A run releases the GIL, and callbacks acquire it again. An exception that a callback throws, including Python's own,
// passes through the engine.
using Released = py::call_guard<py::gil_scoped_release>;

// Ctrl-C is noticed between steps: the run saves and ends, and the caller raises KeyboardInterrupt.
class Interrupts {
 public:
  bool pending() {
    const py::gil_scoped_acquire held;
    if (!seen_ && PyErr_CheckSignals() != 0) {
      PyErr_Clear();
      seen_ = true;
    }
    return seen_;
  }
  // The same callback, except that a KeyboardInterrupt in it is only noted: the callback returns, and the run ends
  // after it.
  template <typename... A>
  std::function<void(A...)> around(const std::function<void(A...)>& callback) {
    if (!callback) return {};
    return [this, &callback](A... arguments) {
      try {
        callback(arguments...);
      } catch (const py::error_already_set& error) {
        const py::gil_scoped_acquire held;
        if (!error.matches(PyExc_KeyboardInterrupt)) throw;
        seen_ = true;
      }
    };
  }
  void raise_if_seen() const {
    if (!seen_) return;
    const py::gil_scoped_acquire held;
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw py::error_already_set();
  }

 private:
  bool seen_ = false;
};

using OnPlan = std::function<void(const api::Plan&)>;
using OnNote = std::function<void(const std::string&)>;
using OnProgress = std::function<void(std::int64_t, std::int64_t)>;

// Ctrl-C ends a call that has no result before its end: KeyboardInterrupt propagates through it.
OnProgress interruptible(const OnProgress& on_progress) {
  return [&on_progress](std::int64_t done, std::int64_t total) {
    const py::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (on_progress) on_progress(done, total);
  };
}

struct PythonCallbacks {
  OnPlan on_plan;
  OnNote on_note;
  std::function<void(const api::Step&)> on_step;
  std::function<void(std::int64_t, const std::string&, const api::Evaluation&)> on_evaluation;
  std::function<void(std::int64_t, const std::string&)> on_save;
};

api::Training train(const api::Session& session, const api::Options& options, const PythonCallbacks& given) {
  Interrupts interrupts;
  api::Callbacks callbacks;
  callbacks.planned = interrupts.around(given.on_plan);
  callbacks.note = interrupts.around(given.on_note);
  callbacks.step = interrupts.around(given.on_step);
  callbacks.evaluated = interrupts.around(given.on_evaluation);
  callbacks.saved = interrupts.around(given.on_save);
  callbacks.should_stop = [&] { return interrupts.pending(); };
  const api::Training training = session.train(options, callbacks);
  interrupts.raise_if_seen();
  return training;
}

api::Evaluation evaluate(const api::Session& session, const api::Options& options, const OnPlan& on_plan,
                         const OnNote& on_note, const OnProgress& on_progress) {
  api::Callbacks callbacks;
  callbacks.planned = on_plan;
  callbacks.note = on_note;
  callbacks.progress = interruptible(on_progress);
  return session.evaluate(options, callbacks);
}

api::Generation generate(const api::Session& session, const std::string& prompt, const api::Options& options,
                         const std::function<bool(py::bytes)>& on_text, const OnPlan& on_plan, const OnNote& on_note) {
  Interrupts interrupts;
  api::Callbacks callbacks;
  callbacks.planned = on_plan;
  callbacks.note = on_note;
  const auto piece = [&](std::string_view text) {
    if (interrupts.pending()) return false;
    if (!on_text) return true;
    const py::gil_scoped_acquire held;
    return on_text(py::bytes(text.data(), text.size()));
  };
  const api::Generation generation = session.generate(prompt, options, piece, callbacks);
  interrupts.raise_if_seen();
  return generation;
}

// Ctrl-C ends a measurement: KeyboardInterrupt propagates through it.
api::MachineProfile profile(const api::Options& options, const std::function<void(double)>& on_progress,
                            const std::function<void(const std::string&)>& on_note) {
  const auto progress = [&](double share) {
    const py::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (on_progress) on_progress(share);
  };
  return api::profile(options, progress, on_note);
}

void merge(const std::string& model, const std::string& adapter, const std::string& output_dir,
           const std::string& save_dtype, std::int64_t memory_bytes, const OnProgress& on_progress) {
  api::Callbacks callbacks;
  callbacks.progress = interruptible(on_progress);
  api::merge(model, adapter, output_dir, save_dtype, memory_bytes, callbacks);
}

void quantize(const std::string& model, const std::string& output_dir, const std::string& weights,
              std::int64_t memory_bytes, const OnProgress& on_progress) {
  api::Callbacks callbacks;
  callbacks.progress = interruptible(on_progress);
  api::quantize(model, output_dir, weights, memory_bytes, callbacks);
}

// Raises the exception classes of headroom.errors for the API's errors, with their attributes.
void register_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const api::Refusal& refusal) {
      const py::object made = py::module_::import("headroom.errors")
                                  .attr("Refusal")(refusal.what(), refusal.remedy(), refusal.budget_bytes(),
                                                   refusal.minimum_bytes(), refusal.changes());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
    } catch (const api::Error& error) {
      // No callback of the package stops a call otherwise than by an exception.
      constexpr const char* names[] = {"UsageError",  "FormatError",   "RunError",
                                       "BudgetError", "InternalError", "Error"};
      const py::object made = py::module_::import("headroom.errors")
                                  .attr(names[static_cast<size_t>(error.kind())])(error.what(), error.remedy());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
    }
  });
}

// The answer as JSON. Ctrl-C while plans are measured ends the call at the next note.
std::string ask(const api::Session& session, const std::string& question, const api::Options& options,
                const std::function<void(const std::string&)>& on_note) {
  constexpr std::pair<const char*, api::PlanQuestion> questions[] = {{"minimum", api::PlanQuestion::minimum},
                                                                     {"ladder", api::PlanQuestion::ladder},
                                                                     {"curve", api::PlanQuestion::curve},
                                                                     {"measure", api::PlanQuestion::measure}};
  const auto* asked = std::find_if(std::begin(questions), std::end(questions),
                                   [&](const auto& known) { return question == known.first; });
  if (asked == std::end(questions)) throw py::value_error("no such question: " + question);
  api::Callbacks callbacks;
  callbacks.note = [&](const std::string& text) {
    const py::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (on_note) on_note(text);
  };
  const py::gil_scoped_release released;
  return session.ask(asked->second, options, callbacks).json;
}

void bind_values(py::module_& m) {
  py::class_<api::Change>(m, "Change", "Something else to ask for where a budget holds no plan.")
      .def_readonly("options", &api::Change::options)
      .def_readonly("effect", &api::Change::effect)
      .def_readonly("minimum_bytes", &api::Change::minimum_bytes)
      .def_readonly("fits", &api::Change::fits);
  py::class_<api::Step>(m, "Step", "After an optimizer step.")
      .def_readonly("step", &api::Step::step)
      .def_readonly("total_steps", &api::Step::total_steps)
      .def_readonly("loss", &api::Step::loss)
      .def_readonly("grad_norm", &api::Step::grad_norm)
      .def_readonly("learning_rate", &api::Step::learning_rate)
      .def_readonly("tokens", &api::Step::tokens)
      .def_readonly("seconds", &api::Step::seconds)
      .def_readonly("resident_bytes", &api::Step::resident_bytes);
  py::class_<api::Evaluation>(m, "Evaluation", "Means over the targets of a data set.")
      .def_readonly("loss", &api::Evaluation::loss)
      .def_readonly("perplexity", &api::Evaluation::perplexity)
      .def_readonly("targets", &api::Evaluation::targets)
      .def_readonly("accuracy", &api::Evaluation::accuracy);
  py::class_<api::Training>(m, "Training", "How a training ended; steps are of the whole run.")
      .def_readonly("steps", &api::Training::steps)
      .def_readonly("stopped", &api::Training::stopped)
      .def_readonly("output_dir", &api::Training::output_dir);
  py::class_<api::Generation>(m, "Generation", "Generated text as UTF-8 without the prompt, and its times in seconds.")
      .def_property_readonly("text", [](const api::Generation& g) { return py::bytes(g.text); })
      .def_readonly("ids", &api::Generation::ids)
      .def_readonly("finish_reason", &api::Generation::finish_reason)
      .def_readonly("prompt_tokens", &api::Generation::prompt_tokens)
      .def_readonly("prompt_seconds", &api::Generation::prompt_seconds)
      .def_readonly("decode_seconds", &api::Generation::decode_seconds);
  py::class_<api::ModelFacts>(m, "ModelFacts", "What config.json says of a model.")
      .def_readonly("architecture", &api::ModelFacts::architecture)
      .def_readonly("family", &api::ModelFacts::family)
      .def_readonly("parameters", &api::ModelFacts::parameters)
      .def_readonly("layers", &api::ModelFacts::layers)
      .def_readonly("vocabulary", &api::ModelFacts::vocabulary)
      .def_readonly("positions", &api::ModelFacts::positions);
  py::class_<api::MachineProfile>(m, "MachineProfile", "What was measured of a machine.")
      .def_readonly("name", &api::MachineProfile::name)
      .def_readonly("path", &api::MachineProfile::path)
      .def_readonly("json", &api::MachineProfile::json);
  py::class_<api::Diagnosis>(m, "Diagnosis", "doctor's answer: a screen of text, every detail, one JSON object.")
      .def_readonly("screen", &api::Diagnosis::screen)
      .def_readonly("details", &api::Diagnosis::details)
      .def_readonly("json", &api::Diagnosis::json);
}

void bind_plan(py::module_& m) {
  py::class_<api::Plan>(m, "Plan", "A plan of a run. Sizes in bytes, times in seconds.")
      .def_property_readonly("feasible", &api::Plan::feasible)
      .def_property_readonly("budget_bytes", &api::Plan::budget_bytes)
      .def_property_readonly("peak_bytes", &api::Plan::peak_bytes)
      .def_property_readonly("minimum_bytes", &api::Plan::minimum_bytes)
      .def_property_readonly("arena_bytes", &api::Plan::arena_bytes)
      .def_property_readonly("process_bytes", &api::Plan::process_bytes)
      .def_property_readonly("step_seconds", &api::Plan::step_seconds)
      .def_property_readonly("micro_batch_size", &api::Plan::micro_batch_size)
      .def_property_readonly("gradient_accumulation_steps", &api::Plan::gradient_accumulation_steps)
      .def_property_readonly("changes", &api::Plan::changes)
      .def("json", &api::Plan::json)
      .def("explanation", &api::Plan::explanation);
}

void bind_session(py::module_& m) {
  py::class_<api::Session>(m, "Session", "A model and the options that its runs share.")
      .def(py::init<std::string, api::Options>())
      .def("plan", &api::Session::plan, Released())
      .def(
          "train",
          [](const api::Session& session, const api::Options& options, const OnPlan& on_plan, const OnNote& on_note,
             const std::function<void(const api::Step&)>& on_step,
             const std::function<void(std::int64_t, const std::string&, const api::Evaluation&)>& on_evaluation,
             const std::function<void(std::int64_t, const std::string&)>& on_save) {
            return train(session, options, {on_plan, on_note, on_step, on_evaluation, on_save});
          },
          Released())
      .def("evaluate", &evaluate, Released())
      .def("generate", &generate, Released())
      .def("release", &api::Session::release, Released())
      .def("ask", &ask);
}

}  // namespace

PYBIND11_MODULE(_engine, m) {
  m.doc() = "headroom's engine; use the package headroom.";
  m.attr("__version__") = headroom::version();
  register_errors();
  bind_values(m);
  bind_plan(m);
  bind_session(m);
  m.def("describe_model", &api::describe_model, Released());
  m.def("profile", &profile, Released());
  m.def("merge", &merge, Released());
  m.def("quantize", &quantize, Released());
  m.def(
      "suggest_models",
      [](const std::string& directory, const api::Options& options) {
        return api::suggest_models(directory, options).json;
      },
      Released());
  m.def(
      "compare_plans", [](const std::string& a, const std::string& b) { return api::compare_plans(a, b).json; },
      Released());
  m.def(
      "explain",
      [](const std::string& text, const std::vector<std::string>& files, const std::vector<std::string>& configs,
         const std::vector<std::string>& command, const std::string& model, const std::string& parameters,
         const std::string& gpu, std::int64_t gpus, std::int64_t micro_batch_size, std::int64_t max_seq_length) {
        return api::explain(
            {text, files, configs, command, model, parameters, gpu, gpus, micro_batch_size, max_seq_length});
      },
      Released());
}

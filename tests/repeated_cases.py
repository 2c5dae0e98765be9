"""Tests whose cases repeat each other on more nets, types and seeds: `make test` asks a part of them, the sweeps all.

Which part is drawn once and is the same in every run. What stands here takes seven seconds or more; a test of which
each case is another line of the code does not belong here.
"""

from __future__ import annotations

from sweep_share import Share

ASKED = Share(seed=3, parts=3)
REPEATED = frozenset(
    [
        "accuracy/test_culprits.py::test_the_planted_culprit_is_found",
        "bm1684/test_bm1684_networks.py::test_f32_networks_are_close_to_the_references",
        "bm1684/test_bm1684_planned_cycles.py::test_floats",
        "bm1684/test_bm1684_residency.py::test_nets_give_the_same_bits_at_all_levels",
        "bm1684x/test_bm1684x_factor_extremes.py::test_integer_columns",
        "bm1684x/test_bm1684x_planned_cycles.py::test_nets_of_other_tests",
        "bmlang/test_bmlang_chip.py::test_an_operator_is_chip_commands_with_the_same_bits",
        "bmlang/test_bmlang_halves.py::test_an_operator_is_chip_commands_with_the_bits_of_eager_results",
        "cli/test_camera_sizes.py::test_the_chip_scales_as_the_host_did",
        "cli/test_fuse_preprocess.py::test_the_model_does_what_the_host_did",
        "codegen/test_memory_of_networks.py::test_neuron_memory_is_close_to_what_is_alive_at_once",
        "corpus/test_generator.py::test_networks_are_valid_and_run_also_deeper",
        "corpus/test_sizes.py::test_sizes_of_every_family_change_or_are_said_to_be_fixed",
        "frontends/onnx/test_onnx_mutations.py::test_changed_fields",
        "frontends/onnx/test_onnx_suppression.py::test_what_stays_is_what_onnx_runtime_lets_stay",
        "lanes/test_between_others.py::test_an_op_between_others",
        "lanes/test_constants_of_rows.py::test_slices_of_rows_have_their_constants",
        "lanes/test_folded_load.py::test_what_is_folded_behind_a_load_is_what_windows_see",
        "lanes/test_integer_extremes.py::test_the_largest_sums",
        "lanes/test_last_columns.py::test_few_columns_behind_many_are_right",
        "lanes/test_unread_rows.py::test_rows_behind_a_single_window_are_stepped_over",
        "ops/test_element_types.py::test_what_a_kernel_takes_it_computes",
        "passes/test_split_deconv.py::test_chips_compute_windows_that_overlap",
        "quant/test_recorded_integers.py::test_drawn_nets_become_the_integers_that_were_recorded",
        "test_cliffs.py::test_large_values_are_moved_as_small_ones",
        "test_cliffs.py::test_moved_elements_are_those_of_evaluate",
        "test_cliffs.py::test_twice_the_images_take_twice_the_time",
        "test_counted_products.py::test_levels_and_precisions_count_the_same",
        "test_drawn_windows.py::test_a_transformer_of_windows_is_near_onnx_runtime",
        "test_group_bars.py::test_level_2_saves_what_it_has_to",
        "test_levels_of_networks.py::test_levels_give_the_same_bits",
        "test_networks.py::test_real_networks_run_byte_equal",
        "test_recorded_commands.py::test_commands_do_what_was_recorded",
        "test_recorded_drawn.py::test_ops_that_go_through_all_passes",
        "test_recorded_drawn.py::test_single_ops",
        "test_recorded_programs.py::test_a_network_is_the_program_that_was_recorded",
        "test_recorded_programs.py::test_programs_of_ops_are_those_that_were_recorded",
        "test_recorded_reports.py::test_reports_are_those_that_were_recorded",
        "test_trained_int8.py::test_a_trained_layer_computes_what_evaluate_says",
        "test_transformer_bars.py::test_layers_of_transformers_take_few_cycles",
        "test_weight_streams.py::test_deep_products_are_those_of_evaluate",
        "tpukernel/test_tpukernel_recorded_calls.py::test_calls_say_and_issue_what_was_recorded",
    ]
)


def is_swept(name: str) -> bool:
    """Whether the test of this name, `tests/FILE::TEST[CASE]`, is left to the sweeps."""
    test, _, case = name.removeprefix("tests/").partition("[")
    return bool(case) and test in REPEATED and not ASKED.holds(name)

"""Remedies as settings of the framework that runs the loop, instead of code changes."""

from __future__ import annotations

from monitor.advice.context.run import RunContext

SETTINGS: dict[str, dict[str, str]] = {
    "transformers": {
        "validate": '`TrainingArguments(eval_strategy="steps", eval_steps={every})`',
        "log": "`TrainingArguments(logging_steps={every})`",
        "save": "`TrainingArguments(save_steps={every})`",
        "workers": "`TrainingArguments(dataloader_num_workers={workers})`",
        "optimizer": '`TrainingArguments(optim="adamw_torch_fused")`',
        "amp": "`TrainingArguments(bf16=True)`",
        "compile": "`TrainingArguments(torch_compile=True)`",
        "checkpointing": "`TrainingArguments(gradient_checkpointing=False)`",
        "batch": "`TrainingArguments(per_device_train_batch_size={batch})`",
        "accumulation": "`TrainingArguments(gradient_accumulation_steps=1)` with that much larger batches",
    },
    "lightning": {
        "validate": "`Trainer(val_check_interval={every})`",
        "log": "`Trainer(log_every_n_steps={every})`",
        "save": "`ModelCheckpoint(every_n_train_steps={every})`",
        "workers": "`DataLoader(…, num_workers={workers}, persistent_workers=True)` in `train_dataloader`",
        "amp": '`Trainer(precision="bf16-mixed")`',
        "anomaly": "`Trainer(detect_anomaly=False)`",
        "optimizer": "`fused=True` in `configure_optimizers`",
        "accumulation": "`Trainer(accumulate_grad_batches=1)` with that much larger batches",
    },
    "accelerate": {
        "amp": '`Accelerator(mixed_precision="bf16")`',
        "accumulation": "`Accelerator(gradient_accumulation_steps=1)` with that much larger batches",
    },
    "fastai": {
        "save": "`SaveModelCallback(every_epoch=n)` with a larger n",
        "workers": "`DataLoaders.from_…(…, num_workers={workers})`",
        "batch": "`DataLoaders.from_…(…, bs={batch})`",
        "amp": "`learner.to_bf16()`",
    },
    "skorch": {
        "workers": "`iterator_train__num_workers={workers}`",
        "batch": "`NeuralNet(batch_size={batch})`",
        "optimizer": "`NeuralNet(optimizer__fused=True)`",
        "compile": "`NeuralNet(compile=True)`",
    },
    "d3rlpy": {
        "save": "`fit(n_steps_per_epoch={every})`",
        "log": "`fit(n_steps_per_epoch={every})`",
        "batch": "`DQNConfig(batch_size={batch})`, or whatever configuration you use",
    },
    "pytorch_tabnet": {
        "workers": "`fit(num_workers={workers})`",
        "batch": "`fit(batch_size={batch})`",
        "optimizer": "`TabNetClassifier(optimizer_params=dict(lr=2e-2, fused=True))`",
    },
    "sbi": {"batch": "`train(training_batch_size={batch})`"},
    "stable_baselines3": {"batch": "`PPO(…, batch_size={batch})`, or whatever agent class you use"},
    "timm": {"checkpointing": "`model.set_grad_checkpointing(False)`"},
    "ultralytics": {
        "validate": "`model.train(val=False)`, and `model.val()` after it",
        "save": "`model.train(save_period=-1)`",
        "workers": "`model.train(workers={workers})`",
        "batch": "`model.train(batch={batch})`",
        "amp": "`model.train(amp=True)`",
        "compile": "`model.train(compile=True)`",
    },
}
"""What to do → the setting that does it. From the frameworks' documentation."""
SAME = {"pytorch_lightning": "lightning", "trl": "transformers"}
"""TRL's configurations are TrainingArguments."""


def framework(run: RunContext) -> str:
    """The package that runs the loop; empty if it is the user's own loop."""
    name = run.run.framework or run.setting("framework")
    known = SAME.get(name, name) if isinstance(name, str) else ""
    return known if known in SETTINGS else ""


def setting(run: RunContext, what: str, **values: object) -> str:
    """ " Here: `TrainingArguments(eval_steps=300)`."; empty unless the framework has such a setting."""
    known = SETTINGS.get(framework(run), {}).get(what)
    return f" Here: {known.format(**values)}." if known else ""

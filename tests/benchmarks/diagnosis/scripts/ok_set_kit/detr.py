"""Convolutions, then an encoder over places and a decoder over queries."""

import torch
from torch import nn


class Backbone(nn.Sequential):
    def __init__(self, width):
        layers, before = [], 3
        for after in (width // 4, width // 2, width):
            layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            layers += [nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            before = after
        super().__init__(*layers)


class MLP(nn.Sequential):
    def __init__(self, width, out):
        super().__init__(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out)
        )


class DETR(nn.Module):
    def __init__(self, args):
        super().__init__()
        d = args.hidden_dim
        self.backbone = Backbone(d)
        settings = {"dropout": 0.0, "batch_first": True}
        encoder = nn.TransformerEncoderLayer(d, args.nheads, 4 * d, **settings)
        self.encoder = nn.TransformerEncoder(encoder, args.enc_layers, enable_nested_tensor=False)
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(d, args.nheads, 4 * d, **settings) for _ in range(args.dec_layers)
        )
        self.row_embed, self.col_embed = (
            nn.Parameter(torch.rand(8, d // 2)),
            nn.Parameter(torch.rand(8, d // 2)),
        )
        self.query_embed = nn.Embedding(args.num_queries, d)
        self.class_embed = nn.Linear(d, args.num_classes + 1)
        self.bbox_embed = MLP(d, 4)

    def forward(self, images):
        features = self.backbone(images)
        h, w = features.shape[-2:]
        pos = torch.cat(
            [self.col_embed[:w].expand(h, -1, -1), self.row_embed[:h, None].expand(-1, w, -1)], -1
        )
        memory = self.encoder(features.flatten(2).transpose(1, 2) + pos.flatten(0, 1))
        queries = self.query_embed.weight.expand(len(images), -1, -1)
        outputs = []
        for layer in self.decoder:
            queries = layer(queries, memory)
            outputs.append(
                {"pred_logits": self.class_embed(queries), "pred_boxes": self.bbox_embed(queries).sigmoid()}
            )
        return {**outputs[-1], "aux_outputs": outputs[:-1]}


def build_detr(args):
    model = DETR(args)
    model.backbone.to(memory_format=torch.channels_last)
    return model
